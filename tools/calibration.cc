#include "tools/calibration.h"

#include "attend/text.h"

namespace attend {
namespace {

// Of several kinds and lengths; numbers, names and marks as they come.
constexpr const char* kSentences[] = {
    "The ferry leaves at 7:40, so we should be at the pier by half past.",
    "Who ordered the soup?",
    "She had never seen a river as wide as this one, and she said so twice.",
    "Please send the signed forms to Ms. Alvarez before Friday, March 3.",
    "No.",
    "Prices rose by 2.4 % in the last quarter, the bank said, mostly because of energy and rent.",
    "If the pump does not start, check the fuse, then the switch, and only then call us.",
    "I love this little place: great coffee, friendly people, and it is never too loud.",
    "The treaty was signed in Lisbon in 1668 and ended a war of nearly thirty years.",
    "Terrible service, cold food and a bill that was wrong; we will not come back.",
    "Water boils at a lower temperature on a mountain, because the air presses less.",
    "how do i get a stain out of a wool coat",
    "Run the tests again, and if they still fail, look at the log file in /tmp/build first.",
    "My grandmother's clock, which has not worked since the flood, still hangs in the hall.",
    "Yes, both of them!",
    "A function is continuous if small changes of what goes in make small changes of what comes "
    "out, and that is all there is to it.",
};

}  // namespace

std::vector<std::vector<int32_t>> CalibrationIds(const Model& model) {
  std::vector<std::vector<int32_t>> texts;
  const Result<Tokenizer> tokenizer = Tokenizer::FromModel(model);
  if (!tokenizer.ok()) return texts;
  for (const char* sentence : kSentences) {
    Result<Encoding> encoding = tokenizer->Encode(sentence);
    if (encoding.ok()) texts.push_back(std::move(encoding->ids));
  }
  return texts;
}

}  // namespace attend
