// A guest whose numbers are known, and that misbehaves when it is asked to (script.hpp). Its model: parameters p; the loss of sample k is
// ½ Σ (p_j − t_j(k))² with t_j(k) = ((7 k + 3 j) mod 11) / 10, so the gradient of a batch is p_j − mean t_j. It starts at p_j = j / 2 and steps
// by p −= lr · factor · v with v = momentum · v + gradient. Each running value is the number of steps that it has computed.
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <random>
#include <span>
#include <vector>

#include "tests/guest/programs/script.hpp"
#include "tests/guest/programs/wire.hpp"
#include "tests/wait.hpp"

namespace troupe::guest::scripted {
namespace {

using nlohmann::json;

std::size_t elements_of(const json& shape) {
  std::size_t size = 1;
  for (const auto& extent : shape) size *= extent.get<std::size_t>();
  return size;
}

std::string variable(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

int open_descriptors() {
  int count = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) ++count;
  return count - 1;  // the folder's own
}

std::string unhex(std::string_view hex) {
  std::string bytes;
  for (std::size_t k = 0; k + 1 < hex.size(); k += 2)
    bytes += static_cast<char>(std::stoi(std::string(hex.substr(k, 2)), nullptr, 16));
  return bytes;
}

/// Floats in shared memory, and where the tensors are in them.
struct Vector {
  std::span<float> floats;
  std::vector<std::size_t> places;  // of each element, in the order of the tensors

  void map(int file, std::size_t count, const json& tensors, const json& offsets) {
    if (count > 0) {
      void* const memory = ::mmap(nullptr, count * sizeof(float), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
      if (memory != MAP_FAILED) floats = {static_cast<float*>(memory), count};
    }
    ::close(file);
    for (std::size_t k = 0; k < tensors.size(); ++k)
      for (std::size_t j = 0; j < elements_of(tensors[k][1]); ++j)
        places.push_back(offsets.at(k).get<std::size_t>() + j);
  }
};

class Program {
 public:
  explicit Program(Script script) : script_(std::move(script)), name_(variable("TROUPE_WORKER")) {
    if (script_.fault.starts_with("fuzz:"))
      random_.emplace(std::stoul(script_.fault.substr(5)) + 977 * std::stoul("0" + name_));
  }

  int run() {
    log("descriptors " + std::to_string(open_descriptors()));
    if (!script_.output.empty()) print(script_.output);
    const auto token = variable("TROUPE_TOKEN");
    if (strikes("JOIN")) strike(0, {});
    wire_.emplace();
    ::signal(SIGINT, SIG_IGN);
    send("HELLO", json{{"protocol", 1},
                       {"token", token},
                       {"library", "scripted 1"},
                       {"pid", ::getpid()},
                       {"tensors", script_.tensors},
                       {"statistics", script_.statistics},
                       {"optimizer", script_.optimizer ? json("sgd") : json(nullptr)},
                       {"mirrors", script_.mirrors},
                       {"program", script_.program}}
                      .dump());
    if (const auto first = wire_->read(); first.type == kTypes.at("WELCOME"))
      take_vectors(json::parse(first.payload));
    else
      return ended(first);
    send("READY", {});
    send("PLAN", json{{"samples", script_.samples_here > 0 && is_meant() ? script_.samples_here : script_.samples},
                      {"batch", script_.batch},
                      {"epochs", script_.epochs}}
                     .dump());
    for (;;) {
      const auto heard = wire_->read();
      if (heard.type == kTypes.at("END") && strikes("END")) strike(0, {});
      if (heard.type == kTypes.at("END")) return ended(heard);
      if (heard.type == kTypes.at("LAST")) {
        log("LAST");
        if (!evaluator_) return 0;
        if (strikes("NOTHING")) return 0;  // a program without evaluation
        send("WAITS", {});
        continue;
      }
      answer(heard);
    }
  }

 private:
  static void print(const std::string& text) {
    std::fputs((text + "\n").c_str(), stdout);
    std::fflush(stdout);
  }
  void log(const std::string& line) const {
    if (!script_.log.empty()) std::ofstream(script_.log + "." + name_, std::ios::app) << line << "\n";
  }
  int ended(const Heard& heard) const {
    if (heard.type != kTypes.at("END")) return 74;
    const auto said = json::parse(heard.payload);
    log("END " + said.at("code").dump() + " " + said.at("reason").get<std::string>());
    return said.at("code").get<int>();
  }

  // ---- faults

  [[nodiscard]] bool is_meant() const {
    return script_.who == "any" || script_.who == name_ || (script_.who == "workers" && !evaluator_);
  }
  bool strikes(const std::string& when) {
    if (script_.fault.empty() || random_) return false;
    if (!is_meant() || script_.when != when || ++seen_ != script_.nth) return false;
    if (!script_.go.empty() && !tests::eventually([&] { return std::filesystem::exists(script_.go); })) return false;
    return script_.once.empty() || ::mkdir(script_.once.c_str(), 0700) == 0;  // whoever makes it is the first
  }

  /// The fault, in place of this frame. Returns if the program goes on.
  void strike(std::uint16_t type, std::string_view payload) {
    const auto colon = script_.fault.find(':');
    const auto what = script_.fault.substr(0, colon);
    const auto rest = colon == std::string::npos ? std::string() : script_.fault.substr(colon + 1);
    const auto whole = Wire::frame(type, payload);
    if (what == "kill") ::raise(SIGKILL);
    if (what == "exit") std::_Exit(std::stoi(rest));
    if (what == "say") print(rest), std::_Exit(3);
    if (what == "failed" || what == "aborted") {
      wire_->write(
          Wire::frame(kTypes.at("FAILED"), json{{"error", rest}, {"traceback", "Traceback\n  line 7"}}.dump()));
      if (what == "aborted") std::abort();
      std::_Exit(1);
    }
    if (what == "orphan") {  // a child keeps the connection and the output open
      if (::fork() != 0) std::_Exit(5);
      what_is_due_never_comes();
    }
    if (what == "close") wire_->shut();
    if (what == "half") wire_->write(std::string_view(whole).substr(0, whole.size() / 2));
    if (what == "close" || what == "half" || what == "hang") what_is_due_never_comes();
    if (what == "descriptor") wire_->write_with_descriptor(whole);
    if (what == "twice") wire_->write(whole + whole);
    if (what == "bytewise")
      for (const char byte : whole) wire_->write({&byte, 1});
    if (what == "raw") wire_->write(unhex(rest));
    if (what == "text") wire_->write(Wire::frame(type, rest));
    if (what == "as") wire_->write(Wire::frame(kTypes.at(rest), {}));
  }
  [[noreturn]] static void what_is_due_never_comes() {
    for (;;) ::pause();
  }

  /// What the seed makes of a frame.
  std::string mutated(const std::string& frame) {
    const auto draw = [&](std::size_t below) {
      return std::uniform_int_distribution<std::size_t>(0, below - 1)(*random_);
    };
    auto bytes = frame;
    switch (draw(24)) {
      case 0: bytes[draw(bytes.size())] = static_cast<char>(draw(256)); break;
      case 1: bytes.resize(draw(bytes.size())); break;
      case 2: bytes += bytes; break;
      case 3: bytes[4] = static_cast<char>(draw(15)); break;
      case 4: bytes.clear(); break;
      case 5:
        for (std::size_t k = 8; k < bytes.size(); ++k) bytes[k] = static_cast<char>(draw(256));
        break;
      case 6:
        bytes =
            Wire::frame(static_cast<std::uint16_t>(1 + draw(12)), std::string(draw(200), static_cast<char>(draw(256))));
        break;
      case 7: bytes.insert(draw(bytes.size()), std::string(1 + draw(9), static_cast<char>(draw(256)))); break;
      case 8: wire_->shut(); break;
      case 9: ::raise(SIGKILL); break;
      default: break;
    }
    return bytes;
  }

  void send(const std::string& type, std::string_view payload) {
    if (strikes(type)) return strike(kTypes.at(type), payload);
    const auto frame = Wire::frame(kTypes.at(type), payload);
    wire_->write(random_ ? mutated(frame) : frame);
  }

  // ---- the model

  void take_vectors(const json& said) {
    evaluator_ = said.at("role") == "evaluator";
    if (evaluator_) name_ = "evaluator";
    gradients_exchanged_ = said.at("gradients");
    buckets_ = said.at("buckets").size();
    epochs_ = said.contains("epochs") ? said.at("epochs").get<std::int64_t>() : script_.epochs;
    const auto floats = said.at("floats").get<std::size_t>();
    shared_.map(wire_->files[0], floats, script_.tensors, said.at("offsets"));
    gradients_.map(wire_->files[1], gradients_exchanged_ ? floats : 0, script_.tensors, said.at("offsets"));
    statistics_.map(wire_->files[2], said.at("statistics_floats"), script_.statistics, said.at("statistics_offsets"));
    own_.resize(shared_.places.size());
    velocity_.resize(own_.size());
    for (std::size_t j = 0; j < own_.size(); ++j) own_[j] = static_cast<float>(j) / 2;
    publish();
    log("WELCOME " + name_ + " of " + said.at("workers").dump() + " gradients " + said.at("gradients").dump() +
        " buckets " + said.at("buckets").dump() + " offsets " + said.at("offsets").dump() +
        (said.contains("missing_gradients") ? " missing " + said.at("missing_gradients").dump() : ""));
  }
  void publish() {
    for (std::size_t j = 0; j < own_.size(); ++j) shared_.floats[shared_.places[j]] = own_[j];
    for (const auto place : statistics_.places) statistics_.floats[place] = static_cast<float>(steps_);
  }
  void obey() {
    for (std::size_t j = 0; j < own_.size(); ++j) own_[j] = shared_.floats[shared_.places[j]];
  }
  void optimize(const std::vector<double>& gradient, double factor) {
    for (std::size_t j = 0; j < own_.size(); ++j) {
      velocity_[j] = static_cast<float>(script_.momentum * velocity_[j] + gradient[j]);
      const double v = script_.momentum == 0 ? gradient[j] : velocity_[j];
      own_[j] -= static_cast<float>(script_.lr * rate_ * factor * v);
    }
  }

  // ---- the optimizer's state

  static char filling(std::size_t k) { return static_cast<char>((7 * k + 3) % 251); }
  /// The velocity, if there is one, filled up with known bytes.
  [[nodiscard]] std::string state() const {
    std::string state;
    for (std::size_t j = 0; j < velocity_.size() && script_.momentum != 0; ++j) append(state, velocity_[j]);
    for (std::size_t k = state.size(); k < script_.state_bytes; ++k) state += filling(k);
    return state;
  }
  void save() {
    const auto whole = state();
    std::size_t offset = 0;
    do {
      std::string payload;
      append(payload, std::uint64_t{whole.size()});
      append(payload, std::uint64_t{offset});
      payload += whole.substr(offset, script_.state_piece);
      send("STATE", payload);
      offset += script_.state_piece;
    } while (offset < whole.size());
  }
  void load(const Heard& heard) {
    if (heard.at<std::uint64_t>(8) != loaded_.size()) std::_Exit(74);
    loaded_ += heard.payload.substr(16);
    if (loaded_.size() < heard.at<std::uint64_t>(0)) return;
    auto fresh = state();
    const auto numbers = script_.momentum == 0 ? 0 : velocity_.size() * sizeof(float);
    if (!loaded_.empty() && (loaded_.size() != fresh.size() || loaded_.substr(numbers) != fresh.substr(numbers))) {
      const auto why =
          "a state of " + std::to_string(loaded_.size()) + " bytes, not of " + std::to_string(fresh.size());
      wire_->write(Wire::frame(kTypes.at("FAILED"), json{{"error", why}, {"traceback", ""}}.dump()));
      std::_Exit(1);
    }
    if (numbers > 0 && !loaded_.empty()) std::memcpy(velocity_.data(), loaded_.data(), numbers);
    loaded_.clear();
    send("LOADED", {});
  }

  void answer(const Heard& heard) {
    log(name_of_type(heard.type) + detail(heard));
    if (!script_.mirrors) obey();
    if (heard.type == kTypes.at("STEP")) {
      step(heard);
    } else if (heard.type == kTypes.at("OPTIMIZE")) {
      if (gradients_exchanged_)
        for (std::size_t j = 0; j < own_.size(); ++j) gradient_[j] = gradients_.floats[gradients_.places[j]];
      optimize(gradient_, heard.at<double>(8));
      if (!script_.mirrors) publish();
      send("STEPPED", {});
    } else if (heard.type == kTypes.at("SYNC")) {
      publish();
      send("SYNCED", {});
    } else if (heard.type == kTypes.at("CHANGED")) {
      obey();
    } else if (heard.type == kTypes.at("EVALUATE")) {
      obey();
      double loss = 0;
      for (std::size_t j = 0; j < own_.size(); ++j) loss += own_[j] * own_[j];
      send("EVALUATED", json{{"metrics", {{"loss", loss}, {"accuracy", 0.25}, {"samples", 8}}}}.dump());
    } else if (heard.type == kTypes.at("SAVE")) {
      save();
    } else if (heard.type == kTypes.at("LOAD")) {
      load(heard);
    }
  }

  std::string detail(const Heard& heard) const {
    std::string text;
    if (heard.type == kTypes.at("STEP")) {
      text = " epoch " + std::to_string(heard.at<std::uint64_t>(8)) + " position " +
             std::to_string(heard.at<std::uint64_t>(16)) + " flags " + std::to_string(heard.at<std::uint32_t>(28)) +
             " factor " + std::to_string(heard.at<double>(32)) + " samples";
      for (std::uint32_t k = 0; k < heard.at<std::uint32_t>(24); ++k)
        text += " " + std::to_string(heard.at<std::uint64_t>(40 + 8 * k));
    }
    if (heard.type == kTypes.at("LOAD"))
      text = " " + std::to_string(heard.payload.size() - 16) + " from " + std::to_string(heard.at<std::uint64_t>(8)) +
             " of " + std::to_string(heard.at<std::uint64_t>(0));
    if (heard.type == kTypes.at("OPTIMIZE"))
      text = " " + std::to_string(heard.at<std::uint64_t>(0)) + " " + std::to_string(heard.at<double>(8));
    return text;
  }

  void step(const Heard& heard) {
    if (script_.pause_ms > 0) tests::let_pass(std::chrono::milliseconds(script_.pause_ms));
    if (steps_ == 0)
      for (std::int64_t k = 0; k < script_.lines; ++k) print("line " + std::to_string(k));
    const auto count = heard.at<std::uint32_t>(24);
    const auto begun = static_cast<double>(heard.at<std::uint64_t>(16)) / static_cast<double>(script_.samples);
    if (script_.schedule) rate_ = 1 - (heard.at<std::uint64_t>(8) + begun) / static_cast<double>(epochs_);
    const bool optimizes = (heard.at<std::uint32_t>(28) & 1U) != 0;
    gradient_.assign(own_.size(), 0);
    double loss = 0;
    for (std::uint32_t k = 0; k < count; ++k)
      for (std::size_t j = 0; j < own_.size(); ++j) {
        const double t = static_cast<double>((7 * heard.at<std::uint64_t>(40 + 8 * k) + 3 * j) % 11) / 10,
                     error = own_[j] - t;
        gradient_[j] += error / count;
        loss += error * error / 2 / count;
      }
    ++steps_;
    kept_.resize(own_.size());
    for (std::size_t j = 0; j < own_.size(); ++j) gradient_[j] = kept_[j] = script_.carry * kept_[j] + gradient_[j];
    if (script_.noise > 0 && steps_ >= script_.noise && is_meant())
      for (double& g : gradient_) g += std::uniform_real_distribution(0.1, 0.2)(system_);
    if (optimizes || !script_.optimizer) optimize(gradient_, optimizes ? heard.at<double>(32) : 1);
    if (!script_.mirrors) publish();
    if (!optimizes && gradients_exchanged_)
      for (std::size_t j = 0; j < own_.size(); ++j)
        gradients_.floats[gradients_.places[j]] = static_cast<float>(gradient_[j]);
    for (std::uint32_t k = 0; !optimizes && k < buckets_; ++k) {
      std::string number;
      append(number, k);
      send("BUCKET", number);
    }
    std::string payload;
    append(payload, heard.at<std::uint64_t>(0));
    append(payload, loss);
    append(payload, static_cast<std::int64_t>(count));
    append(payload, 0.001);
    send("DONE", payload);
  }

  const Script script_;
  std::string name_;
  std::optional<Wire> wire_;
  std::optional<std::mt19937_64> random_;  // of a fuzzer
  bool evaluator_ = false, gradients_exchanged_ = false;
  std::size_t buckets_ = 0;
  std::int64_t epochs_ = 1;  // of the run
  double rate_ = 1;          // of its schedule
  int seen_ = 0, steps_ = 0;
  Vector shared_, gradients_, statistics_;
  std::vector<float> own_;        // parameters
  std::vector<float> velocity_;   // of its optimizer
  std::string loaded_;            // the pieces of a state, until they are whole
  std::vector<double> gradient_;  // of the latest step
  std::vector<double> kept_;      // script.hpp: carry
  std::random_device system_;
};

}  // namespace
}  // namespace troupe::guest::scripted

int main(int count, char** words) {
  return troupe::guest::scripted::Program(troupe::guest::scripted::Script::of(count, words)).run();
}
