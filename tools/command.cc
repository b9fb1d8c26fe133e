#include "tools/command.h"

#include <CLI/CLI.hpp>
#include <algorithm>

namespace attend::tools {

void Command::Flag(const std::string& name, bool* value, const std::string& description) {
  app_->add_flag(name, *value, description);
}

void Command::Text(const std::string& name, std::string* value, const std::string& type,
                   const std::string& description, bool required) {
  // An empty one is a variable of a script that is not set, and nobody means the default by it.
  const auto check = [](const std::string& text) {
    return text.empty() ? std::string("the value is empty") : std::string();
  };
  app_->add_option(name, *value, description)->type_name(type)->required(required)->check(check);
}

void Command::Int(const std::string& name, int32_t* value, int32_t min, int32_t max,
                  const std::string& description) {
  app_->add_option(name, *value, description)->check(CLI::Range(min, max))->type_name("N");
}

void Command::OptionalInt(const std::string& name, std::optional<int32_t>* value, int32_t min,
                          int32_t max, const std::string& description) {
  app_->add_option(name, *value, description)->check(CLI::Range(min, max))->type_name("N");
}

void Command::OptionalFloat(const std::string& name, std::optional<double>* value,
                            const std::string& description) {
  app_->add_option(name, *value, description)->type_name("X");
}

void Command::OptionalSeed(const std::string& name, std::optional<uint64_t>* value,
                           const std::string& description) {
  app_->add_option(name, *value, description)->type_name("N");
}

void Command::Choice(const std::string& name, std::string* value, const std::string& type,
                     const std::vector<std::string>& allowed, const std::string& description) {
  app_->add_option(name, *value, description)->type_name(type)->check(CLI::IsMember(allowed));
}

void Command::Choices(const std::string& name, std::vector<std::string>* values,
                      const std::string& type, const std::vector<std::string>& allowed,
                      const std::string& description) {
  // Cut here: a list option of the parser would swallow the arguments behind it.
  const auto take = [values](const std::string& text) { *values = CLI::detail::split(text, ','); };
  const auto check = [allowed](const std::string& text) {
    for (const std::string& one : CLI::detail::split(text, ',')) {
      if (std::find(allowed.begin(), allowed.end(), one) == allowed.end()) {
        return "'" + one + "' is none of " + CLI::detail::join(allowed, ", ");
      }
    }
    return std::string();
  };
  app_->add_option_function<std::string>(name, take,
                                         description + ": " + CLI::detail::join(allowed, ", "))
      ->type_name(type)
      ->check(check);
}

}  // namespace attend::tools
