// Tags a sentence, and says where in it every word stands.
#include <attend/text.h>

#include <cstdio>

int main(int argc, char** argv) {
  attend::Result<attend::Tagger> tagger = attend::Tagger::Load(argc > 2 ? argv[2] : TAG_MODEL);
  if (!tagger.ok()) {
    std::fprintf(stderr, "%s\n", tagger.status().ToString().c_str());
    return 1;
  }
  const char* text = argc > 1 ? argv[1] : "I saw a saw";
  attend::Result<attend::Tags> tags = tagger->Tag(text);
  if (!tags.ok()) {
    std::fprintf(stderr, "%s\n", tags.status().ToString().c_str());
    return 1;
  }
  for (const attend::TaggedWord& word : tags->words) {
    std::printf("%u-%u\t%s\t%s\n", word.range.begin, word.range.end, word.text.c_str(),
                word.label.c_str());
  }
}
