/* Tags texts from C99: the model and the tagger are made once, each argument is tagged. */
#include <attend/attend_c.h>
#include <stdio.h>
#include <string.h>

static int Fail(const attend_error* error) {
  fprintf(stderr, "%s: %s", error->where, error->message);
  fprintf(stderr, error->hint[0] != '\0' ? " (%s)\n" : "%s\n", error->hint);
  return 1;
}

int main(int argc, char** argv) {
  attend_error error = ATTEND_ERROR_INIT;
  attend_model* model = NULL;
  attend_tagger* tagger = NULL;
  attend_tags tags = ATTEND_TAGS_INIT;
  int failed = 0;
  if (argc < 2) {
    fprintf(stderr, "usage: c_client MODEL [TEXT...]\n");
    return 2;
  }
  if (attend_model_load(argv[1], &model, &error) != ATTEND_OK) return Fail(&error);
  if (attend_tagger_create(model, NULL, &tagger, &error) != ATTEND_OK) failed = Fail(&error);
  attend_model_free(model); /* the tagger keeps what it needs */
  for (int i = 2; i < argc && !failed; ++i) {
    if (attend_tag(tagger, argv[i], strlen(argv[i]), &tags, &error) != ATTEND_OK) {
      failed = Fail(&error);
      break;
    }
    for (int64_t w = 0; w < tags.num_words; ++w) { /* valid until the next attend_tag */
      const attend_word* word = &tags.words[w];
      printf("%u-%u\t%s\t%s\n", (unsigned)word->range.begin, (unsigned)word->range.end, word->text,
             word->label);
    }
  }
  attend_tagger_free(tagger);
  return failed;
}
