// A model inside the program: no file to find at run time. The assembler puts the bytes of
// MODEL_FILE into the read-only data; Model::FromBytes copies what it needs.
#include <attend/text.h>

#include <cstdio>

__asm__(
    ".section .rodata\n"
    ".global embedded_model, embedded_model_end\n"
    ".balign 64\n"
    "embedded_model:\n"
    ".incbin \"" MODEL_FILE
    "\"\n"
    "embedded_model_end:\n"
    ".byte 0\n"
    ".previous\n");
extern "C" const std::byte embedded_model[], embedded_model_end[];

int main(int argc, char** argv) {
  attend::Result<attend::Model> model =
      attend::Model::FromBytes({embedded_model, embedded_model_end});
  if (!model.ok()) return std::puts(model.status().ToString().c_str()), 1;
  attend::Result<attend::Generator> speller = attend::Generator::Create(*model);
  if (!speller.ok()) return std::puts(speller.status().ToString().c_str()), 1;
  for (int i = 1; i < argc; ++i) {
    attend::Result<attend::Generation> sounds = speller->Generate(argv[i]);
    if (!sounds.ok()) return std::puts(sounds.status().ToString().c_str()), 1;
    std::printf("%s\t%s\n", argv[i], sounds->outputs[0].text.c_str());
  }
}
