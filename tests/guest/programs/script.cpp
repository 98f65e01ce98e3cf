#include "tests/guest/programs/script.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string_view>

namespace troupe::guest::scripted {

Script Script::of(int count, char** words) {
  Script script;
  for (int k = 1; k < count; ++k) {
    const std::string_view word(words[k]);
    const auto equals = word.find('=');
    const std::string key(word.substr(0, equals)), value(word.substr(std::min(equals, word.size() - 1) + 1));
    const std::map<std::string, std::string*> texts{
        {"log", &script.log}, {"output", &script.output}, {"fault", &script.fault}, {"when", &script.when},
        {"who", &script.who}, {"once", &script.once},     {"go", &script.go},       {"program", &script.program}};
    if (const auto text = texts.find(key); text != texts.end())
      *text->second = value;
    else if (key == "tensors")
      script.tensors = nlohmann::json::parse(value);
    else if (key == "statistics")
      script.statistics = nlohmann::json::parse(value);
    else if (key == "optimizer")
      script.optimizer = value == "1";
    else if (key == "mirrors")
      script.mirrors = value == "1";
    else if (key == "schedule")
      script.schedule = value == "1";
    else if (key == "lines")
      script.lines = std::stoll(value);
    else if (key == "samples_here")
      script.samples_here = std::stoll(value);
    else if (key == "samples")
      script.samples = std::stoll(value);
    else if (key == "batch")
      script.batch = std::stoll(value);
    else if (key == "epochs")
      script.epochs = std::stoll(value);
    else if (key == "lr")
      script.lr = std::stod(value);
    else if (key == "momentum")
      script.momentum = std::stod(value);
    else if (key == "state_bytes")
      script.state_bytes = std::stoull(value);
    else if (key == "state_piece")
      script.state_piece = std::stoull(value);
    else if (key == "carry")
      script.carry = std::stod(value);
    else if (key == "noise")
      script.noise = std::stoi(value);
    else if (key == "nth")
      script.nth = std::stoi(value);
    else if (key == "pause_ms")
      script.pause_ms = std::stoi(value);
    else {
      std::fprintf(stderr, "scripted_guest: what is %s?\n", words[k]);
      std::exit(64);
    }
  }
  return script;
}

}  // namespace troupe::guest::scripted
