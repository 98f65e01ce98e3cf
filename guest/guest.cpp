#include "guest/guest.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <cstring>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "guest/lines.hpp"
#include "guest/listener.hpp"
#include "guest/package.hpp"

namespace troupe::guest {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

constexpr auto kEndPatience = 20s;             // for END to go out, and for a program with nothing to save to end
constexpr auto kQuietEnd = 10s;                // of a program that goes on after its last batch: then the user is told
constexpr auto kDeathPatience = 5000ms;        // between the connection's end and that of the process and its keepers
constexpr std::uint64_t kTrusted = 256 << 20;  // bytes of a state that memory is taken for before they have come
constexpr std::uint32_t kOptimizes = 1;        // a flag of STEP
constexpr std::int64_t kResolution = 1'000'000;  // samples of an evaluation whose program does not say how many it read

Clock::time_point in(std::chrono::duration<double> time) {
  return Clock::now() + std::chrono::duration_cast<Clock::duration>(time);
}

/// Appends integers as the protocol has them: little-endian, as this machine.
template <class T>
void put(std::vector<std::byte>& payload, T value) {
  const auto size = payload.size();
  payload.resize(size + sizeof(T));
  std::memcpy(payload.data() + size, &value, sizeof(T));
}
template <class T>
T take(const Frame& frame, std::size_t offset) {
  T value{};
  std::memcpy(&value, frame.payload.data() + offset, sizeof(T));
  return value;
}

constexpr std::size_t kTracebackLines = 12;
constexpr std::string_view kEndedWell = "ended with exit code 0";
constexpr double kRounding = 1e-4;      // of a share: a mean of float32 or bf16 numbers may be this much above 1
constexpr std::size_t kDoneBytes = 32;  // u64 lease, f64 loss, i64 samples, f64 seconds
constexpr std::size_t kPieceHead = 16;  // u64 bytes in all, u64 offset

}  // namespace

core::Result<std::unique_ptr<Guest>> Guest::start(const GuestProgram& program, const GuestPlace& place,
                                                  OnLine on_line) {
  std::unique_ptr<Guest> guest(new Guest(program, place, on_line));
  auto listener = GuestListener::open();
  if (!listener) return tl::unexpected(std::move(listener.error()));
  GuestProcess::Variables variables{{"TROUPE_GUEST", listener->name()},
                                    {"TROUPE_TOKEN", listener->token()},
                                    {"TROUPE_WORKER", std::to_string(place.worker)},
                                    {"TROUPE_WORKERS", std::to_string(place.workers)},
                                    {"TROUPE_LOCAL_WORKER", std::to_string(place.local_worker)},
                                    {"PYTHONUNBUFFERED", "1"}};
  if (std::getenv("OMP_NUM_THREADS") == nullptr)
    variables.emplace_back("OMP_NUM_THREADS", std::to_string(place.threads));
  auto process = GuestProcess::start(program.command, with_package(std::move(variables)), std::move(on_line));
  if (!process) return tl::unexpected(std::move(process.error()));
  guest->process_ = std::move(*process);
  guest->started_by_ = in(program.start);
  auto arrival = listener->await(*guest->process_, guest->started_by_);
  if (!arrival) return tl::unexpected(guest->explained(std::move(arrival.error())));
  guest->introduction_ = std::move(arrival->introduction);
  guest->frames_.emplace(std::move(arrival->frames));
  return guest;
}

Guest::~Guest() { (void)end(false); }

void Guest::refuse(const std::string& why) {
  say_end(core::exit_code(core::Errc::config), why);
  (void)process_->ending(kEndPatience);
  left_ = true;
}

void Guest::say_end(int code, const std::string& why) {
  const auto end = nlohmann::json{{"code", code}, {"reason", why}}.dump();
  (void)frames_->send(FrameType::end, end, in(kEndPatience));
}

core::Result<void> Guest::end(bool in_order) {
  if (!frames_ || left_ || broken_) return {};
  left_ = true;
  // An evaluator that was asked for nothing may still be preparing its data.
  if (!in_order || !(place_.role == Role::worker ? stepped_ : waits_)) {
    say_end(core::exit_code(core::Errc::peer_lost), "it needs nothing more of this program");
    (void)process_->ending(kEndPatience);
    return {};
  }
  say_end(0, "the run has ended");
  const auto how = ending_after_work();
  if (how == kEndedWell) return {};
  auto why = how ? fmt::format("its program {} after its last batch", *how)
                 : fmt::format("its program went on for {:g} s after its last batch, and was killed (model.silence_s)",
                               program_.end.count());
  if (const auto lines = process_->last_lines(); how && !lines.empty()) why += "; its last line: " + lines.back();
  if (on_line_) on_line_("warning: " + why);
  return core::fail(core::Errc::program, std::move(why));
}

std::optional<std::string> Guest::ending_after_work() {
  const auto patience = std::chrono::ceil<std::chrono::milliseconds>(program_.end);
  const auto quiet = std::min<std::chrono::milliseconds>(patience, kQuietEnd);
  if (auto how = process_->ending(quiet); how || quiet == patience) return how;
  if (on_line_)
    on_line_(
        fmt::format("the program goes on after its last batch: it is killed if it takes longer than {:g} s "
                    "(model.silence_s)",
                    program_.end.count()));
  return process_->ending(patience - quiet);
}

core::Result<TrainingPlan> Guest::welcome(const SharedVectors& vectors) {
  const auto placed = [](const std::vector<int>& places, const std::vector<std::int64_t>& offsets) {
    std::vector<std::int64_t> all;
    for (const int place : places) all.push_back(place < 0 ? 0 : offsets.at(static_cast<std::size_t>(place)));
    return all;
  };
  auto buckets = nlohmann::json::array();
  if (vectors.shares_gradients)
    for (const auto& bucket : vectors.buckets) buckets.push_back({bucket.offset, bucket.count});
  nlohmann::json text{{"role", place_.role == Role::worker ? "worker" : "evaluator"},
                      {"worker", place_.worker},
                      {"workers", place_.workers},
                      {"seed", place_.seed},
                      {"floats", vectors.floats},
                      {"offsets", placed(introduction_.places, vectors.offsets)},
                      {"statistics_floats", vectors.statistics_floats},
                      {"statistics_offsets", placed(introduction_.statistics_places, vectors.statistics_offsets)},
                      {"gradients", vectors.shares_gradients},
                      {"buckets", buckets},
                      {"silence_s", program_.silence.count()}};
  if (const auto epochs = place_.epochs > 0 ? place_.epochs : program_.epochs; epochs > 0) text["epochs"] = epochs;
  if (place_.zeros_for_missing_gradients) text["missing_gradients"] = "zeros";
  buckets_ = static_cast<std::uint32_t>(buckets.size());
  const auto json = text.dump();
  const std::array files{vectors.parameters, vectors.gradients, vectors.statistics};
  if (auto sent = send(FrameType::welcome, std::as_bytes(std::span(json)), files); !sent)
    return tl::unexpected(std::move(sent.error()));
  if (auto ready = expect(FrameType::ready, started_by_); !ready) return tl::unexpected(std::move(ready.error()));
  auto frame = expect(FrameType::plan, started_by_);
  if (!frame) return tl::unexpected(std::move(frame.error()));
  auto plan = parse_plan(frame->text());
  if (!plan) return tl::unexpected(explained(std::move(plan.error())));
  has_plan_ = true;
  samples_ = plan->samples;
  if (place_.role == Role::evaluator)
    if (auto sent = send(FrameType::last); !sent) return tl::unexpected(std::move(sent.error()));
  return plan;
}

core::Result<nn::StepResult> Guest::step(const nn::Batch& batch, bool optimize,
                                         const std::function<void(int)>& on_bucket_ready) {
  const auto samples = batch.labels.first(static_cast<std::size_t>(batch.count));
  auto& payload = step_;
  payload.clear();
  put(payload, batch.lease);
  put(payload, static_cast<std::uint64_t>(batch.epoch));
  const auto done =
      std::llround((batch.epoch_position - batch.epoch) * static_cast<double>(samples_));  // of this epoch
  put(payload, static_cast<std::uint64_t>(std::clamp<std::int64_t>(done, 0, samples_ - 1)));
  put(payload, static_cast<std::uint32_t>(samples.size()));
  put(payload, optimize ? kOptimizes : std::uint32_t{0});
  put(payload, optimize ? batch.lr : 1.0);
  for (const auto sample : samples) put(payload, static_cast<std::uint64_t>(sample));
  stepped_ = true;
  if (auto sent = send(FrameType::step, payload); !sent) return tl::unexpected(std::move(sent.error()));
  const auto deadline = answer_by();
  for (std::uint32_t next = 0;;) {
    auto frame = expect(std::array{FrameType::done, FrameType::bucket}, deadline);
    if (!frame) return tl::unexpected(std::move(frame.error()));
    if (frame->type == FrameType::bucket) {
      if (frame->payload.size() != sizeof(std::uint32_t) || take<std::uint32_t>(*frame, 0) != next || next >= buckets_)
        return wrong(fmt::format("the guest's BUCKET is not number {} of {}", next, buckets_));
      if (on_bucket_ready) on_bucket_ready(static_cast<int>(next));
      ++next;
      continue;
    }
    if (frame->payload.size() != kDoneBytes)
      return wrong(fmt::format("the guest's DONE has {} bytes", frame->payload.size()));
    if (const auto lease = take<std::uint64_t>(*frame, 0); lease != batch.lease)
      return wrong(fmt::format("the guest has done lease {}, and was given {}", lease, batch.lease));
    if (next != buckets_ && !optimize)
      return wrong(fmt::format("the guest has done a step with {} of {} buckets", next, buckets_));
    nn::StepResult result;
    result.loss = take<double>(*frame, 8);
    result.top1 = result.top5 = -1;  // DONE has none
    result.samples = std::clamp<std::int64_t>(take<std::int64_t>(*frame, 16), 0, batch.count);
    const double seconds = take<double>(*frame, 24);
    result.backward_s = std::isfinite(seconds) ? std::max(seconds, 0.0) : 0;
    return result;
  }
}

core::Result<void> Guest::optimize(std::uint64_t number, double lr) {
  std::vector<std::byte> payload;
  put(payload, number);
  put(payload, lr);
  return send(FrameType::optimize, payload).and_then([&]() -> core::Result<void> {
    return expect(FrameType::stepped, answer_by()).map([](const Frame&) {});
  });
}

core::Result<void> Guest::sync() {
  if (!introduction_.mirrors) return {};
  return send(FrameType::sync).and_then([&]() -> core::Result<void> {
    return expect(FrameType::synced, answer_by()).map([](const Frame&) {});
  });
}

core::Result<void> Guest::changed() { return introduction_.mirrors ? send(FrameType::changed) : core::Result<void>(); }

core::Result<std::vector<std::byte>> Guest::save(std::uint64_t most) {
  if (auto sent = send(FrameType::save); !sent) return tl::unexpected(std::move(sent.error()));
  std::vector<std::byte> state;
  for (std::optional<std::uint64_t> all; !all || state.size() < *all;) {
    const auto frame = expect(FrameType::state, answer_by());
    if (!frame) return tl::unexpected(frame.error());
    if (frame->payload.size() < kPieceHead)
      return wrong(fmt::format("the guest's STATE has {} bytes", frame->payload.size()));
    const auto total = take<std::uint64_t>(*frame, 0), offset = take<std::uint64_t>(*frame, sizeof(std::uint64_t));
    const auto piece = std::span(frame->payload).subspan(kPieceHead);
    if (total > most)
      return wrong(fmt::format("the state of the guest's optimizer has {} bytes, and for its parameters {} are allowed",
                               total, most));
    if (total != all.value_or(total) || offset != state.size() || piece.size() > total - offset ||
        (piece.empty() && total > 0))
      return wrong(fmt::format("the guest's STATE has {} bytes from {} of {}, after {} of {}", piece.size(), offset,
                               total, state.size(), all.value_or(total)));
    all = total;
    state.reserve(std::min<std::uint64_t>(total, kTrusted));
    state.insert(state.end(), piece.begin(), piece.end());
  }
  return state;
}

core::Result<void> Guest::load(std::span<const std::byte> state) {
  std::vector<std::byte> payload;
  std::size_t offset = 0;
  do {
    const auto piece = state.subspan(offset, std::min(state.size() - offset, kMostPayload - kPieceHead));
    payload.clear();
    put(payload, static_cast<std::uint64_t>(state.size()));
    put(payload, static_cast<std::uint64_t>(offset));
    payload.insert(payload.end(), piece.begin(), piece.end());
    if (auto sent = send(FrameType::load, payload); !sent) return sent;
    offset += piece.size();
  } while (offset < state.size());
  return expect(FrameType::loaded, answer_by()).map([](const Frame&) {});
}

core::Result<std::optional<nn::StepResult>> Guest::evaluate() {
  if (left_) return std::nullopt;
  const auto deadline = answer_by();
  if (!waits_) {  // it comes to its evaluation, or ends without one
    auto frame = frames_->receive(deadline);
    if (!frame && frame.error().code == core::Errc::io && process_->ending(kEndPatience) == kEndedWell) {
      left_ = true;
      return std::nullopt;
    }
    frame = checked(std::move(frame), std::array{FrameType::waits});
    if (!frame) return tl::unexpected(std::move(frame.error()));
    waits_ = true;
  }
  std::vector<std::byte> payload;
  put(payload, std::uint32_t{1});
  if (auto sent = send(FrameType::evaluate, payload); !sent) return tl::unexpected(std::move(sent.error()));
  auto frame = expect(FrameType::evaluated, deadline);
  if (!frame) return tl::unexpected(std::move(frame.error()));
  const auto answer = nlohmann::json::parse(frame->text(), nullptr, false);
  if (!answer.is_object() || !answer.contains("metrics")) return wrong("the guest's EVALUATED has no metrics");
  const auto metric = [&](const char* name, double otherwise) {
    const auto& metrics = answer["metrics"];
    const auto found = metrics.is_object() ? metrics.find(name) : metrics.end();
    return metrics.is_object() && found != metrics.end() && found->is_number() ? found->get<double>() : otherwise;
  };
  nn::StepResult result;
  result.samples = static_cast<std::int64_t>(std::clamp(metric("samples", kResolution), 1.0, 1e15));
  result.loss = metric("loss", std::nan(""));
  for (const auto& [name, count] : {std::pair{"accuracy", &result.top1}, std::pair{"top5", &result.top5}}) {
    const auto told = metric(name, std::nan(""));
    *count = -1;
    if (std::isnan(told)) continue;
    if (told < -kRounding || told > 1 + kRounding)
      return core::fail(core::Errc::program,
                        fmt::format("run.evaluate: \"{}\" is {:g}: it is a share of the samples, from 0 to 1{}", name,
                                    told, told > 1 && told <= 100 ? " (divide percentages by 100)" : ""));
    *count = std::llround(std::clamp(told, 0.0, 1.0) * static_cast<double>(result.samples));
  }
  return result;
}

core::Result<void> Guest::send(FrameType type, std::span<const std::byte> payload, std::span<const int> descriptors) {
  auto sent = frames_->send(type, payload, descriptors, answer_by());
  if (!sent) return tl::unexpected(explained(std::move(sent.error())));
  return {};
}

core::Result<Frame> Guest::expect(FrameType type, Frames::Deadline deadline) {
  return expect(std::span(&type, 1), deadline);
}

core::Result<Frame> Guest::expect(std::span<const FrameType> types, Frames::Deadline deadline) {
  return checked(frames_->receive(deadline), types);
}

core::Result<Frame> Guest::checked(core::Result<Frame> frame, std::span<const FrameType> types) {
  if (!frame) return tl::unexpected(explained(std::move(frame.error())));
  if (frame->type == FrameType::failed) {
    const auto told = nlohmann::json::parse(frame->text(), nullptr, false);
    const auto text = [&](const char* key) {
      return told.is_object() && told.contains(key) && told[key].is_string() ? told[key].get<std::string>() : "";
    };
    return tl::unexpected(explained({core::Errc::program, "the program has failed: " + printable(text("error"))},
                                    last_lines_of(text("traceback"), kTracebackLines)));
  }
  const bool bare = frame->type == FrameType::ready || frame->type == FrameType::stepped ||
                    frame->type == FrameType::synced || frame->type == FrameType::waits ||
                    frame->type == FrameType::loaded;
  if (bare && !frame->payload.empty())
    return wrong(fmt::format("the guest's {} has {} bytes", name_of(frame->type), frame->payload.size()));
  if (std::ranges::find(types, frame->type) == types.end())
    return wrong(fmt::format("the guest said {} where {} was due", name_of(frame->type), name_of(types.front())));
  return frame;
}

Frames::Deadline Guest::answer_by() const { return in(program_.silence); }

tl::unexpected<core::Error> Guest::wrong(std::string message) {
  return tl::unexpected(explained({core::Errc::data, std::move(message)}));
}

core::Error Guest::explained(core::Error error, const std::string& traceback) {
  broken_ = true;
  if (error.code == core::Errc::timeout)
    error.message += has_plan_ ? fmt::format(" for {:g} s (model.silence_s)", program_.silence.count())
                               : fmt::format(" for {:g} s (model.start_s)", program_.start.count());
  // A closed connection is mostly the end of the process.
  const bool ends = error.code == core::Errc::io || error.code == core::Errc::program;
  if (const auto ended = process_->ending(ends ? kDeathPatience : 0ms)) {
    error.message += fmt::format("; it {}", *ended);
    // A program that has said why it fails may be killed by its own end, as one of a broken GPU is.
    if (error.code == core::Errc::io)
      error.code = process_->ended_by_itself() ? core::Errc::program : core::Errc::peer_lost;
  }
  const auto lines = process_->last_lines();
  if (!traceback.empty())
    error.message += "; " + traceback;
  else if (!lines.empty())
    error.message += fmt::format("; its last lines: {}", fmt::join(lines, " | "));
  if (!has_plan_ || error.code == core::Errc::program) return error;
  // What is not the protocol comes of the program's own code, too; silence and a kill may be the machine's.
  error.code = error.code == core::Errc::data ? core::Errc::program : core::Errc::io;
  return error;
}

}  // namespace troupe::guest
