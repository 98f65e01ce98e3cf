#include "service/journal/event_list.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <map>
#include <memory>
#include <vector>

#include <fmt/format.h>

#include "core/file_descriptor.hpp"
#include "core/journal_scanner.hpp"
#include "experiment/directory/run_records.hpp"
#include "sim/replay/describe.hpp"
#include "sim/replay/result/verification.hpp"
#include "store/run_directory.hpp"
#include "strategies/host/journal_codec.hpp"

namespace troupe::service {
namespace {

using Row = nlohmann::ordered_json;
using core::Errc;
using experiment::RunRecordKind;

constexpr off_t kMostReplayBytes = off_t{2} * replay::kMostReplayBytes;

/// "journal-0012.bin" → 12; 0: another file.
std::int64_t segment_number(std::string_view name) {
  constexpr std::string_view kBegin = "journal-", kEnd = ".bin";
  if (!name.starts_with(kBegin) || !name.ends_with(kEnd) || name.size() <= kBegin.size() + kEnd.size()) return 0;
  name = name.substr(kBegin.size(), name.size() - kBegin.size() - kEnd.size());
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), number);
  return error == std::errc{} && end == name.data() + name.size() && number > 0 ? number : 0;
}

std::vector<std::int64_t> segments_in(int directory) {
  std::vector<std::int64_t> numbers;
  const int again = ::openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  const std::unique_ptr<DIR, int (*)(DIR*)> open(again < 0 ? nullptr : ::fdopendir(again), &::closedir);
  while (const auto* entry = open ? ::readdir(open.get()) : nullptr)
    if (const auto number = segment_number(entry->d_name); number > 0) numbers.push_back(number);
  std::ranges::sort(numbers);
  return numbers;
}

/// What replays have left beside the journal; nothing where they have not, or where it cannot be read.
std::vector<replay::Verification> replays_in(int directory) {
  const core::FileDescriptor file(
      ::openat(directory, replay::kReplayFile, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  struct stat status {};
  if (!file || ::fstat(file.get(), &status) != 0 || !S_ISREG(status.st_mode) || status.st_size > kMostReplayBytes)
    return {};
  std::string text(static_cast<std::size_t>(status.st_size), '\0');
  const auto count = ::pread(file.get(), text.data(), text.size(), 0);
  text.resize(static_cast<std::size_t>(std::max<ssize_t>(count, 0)));
  return replay::parse_verifications(text).value_or(std::vector<replay::Verification>{});
}

Row row_of(const replay::SegmentFinding& found) {
  if (found.of == nullptr) return nullptr;
  const auto& d = found.of->difference;
  return {{"at", found.replay->at},
          {"program", found.replay->program},
          {"hashes", found.of->hashes},
          {"complete", found.of->complete},
          {"difference", d ? Row{{"member", d->member}, {"event", d->event}, {"message", d->message}} : Row(nullptr)}};
}

Row row_of(const replay::EventFinding& found) {
  if (found.replay == nullptr) return nullptr;
  return {
      {"result", found.differs ? "differs" : "reached"}, {"at", found.replay->at}, {"program", found.replay->program}};
}

/// One record as people see it.
struct Shown {
  std::string member{};  // "worker1"; empty: of the run
  std::string text{};
  std::optional<std::uint64_t> step{};  // of a worker's event
  std::optional<std::uint64_t> hash{};  // of a snapshot
  std::string slot{};                   // of it
  bool is_event = false;                // it counts among the member's events
};

struct StepOf {
  std::optional<std::uint64_t> operator()(const strategies::Started& e) const { return e.step; }
  std::optional<std::uint64_t> operator()(const strategies::BucketReady& e) const { return e.step; }
  std::optional<std::uint64_t> operator()(const strategies::StepDone& e) const { return e.step; }
  std::optional<std::uint64_t> operator()(const strategies::Stopped& e) const { return e.step; }
  template <class Other>
  std::optional<std::uint64_t> operator()(const Other&) const {
    return std::nullopt;
  }
};

core::Result<Shown> shown(const core::JournalRecord& record) {
  if (strategies::is_worker_event(record.kind))
    return strategies::decode_worker_event(record).map([](const strategies::WorkerRecord& found) {
      return Shown{.member = fmt::format("worker{}", found.worker),
                   .text = replay::describe(found.event),
                   .step = std::visit(StepOf{}, found.event),
                   .is_event = true};
    });
  if (strategies::is_server_event(record.kind))
    return strategies::decode_server_event(record).map([](const strategies::ServerRecord& found) {
      return Shown{
          .member = fmt::format("server{}", found.shard), .text = replay::describe(found.event), .is_event = true};
    });
  switch (static_cast<RunRecordKind>(record.kind)) {
    case RunRecordKind::snapshot:
      return experiment::decode_snapshot(record).map([](const experiment::SnapshotRecord& found) {
        return Shown{.member = fmt::format("{}{}", found.server ? "server" : "worker", found.member),
                     .text = replay::describe(found),
                     .hash = found.hash,
                     .slot = replay::describe(found.slot),
                     .is_event = true};
      });
    case RunRecordKind::lease_granted:
    case RunRecordKind::lease_with_factor:
      return experiment::decode_lease(record).map([](const experiment::LeaseGranted& found) {
        return Shown{.member = fmt::format("worker{}", found.worker),
                     .text = fmt::format("lease {}: {} samples of epoch {} from position {} on", found.lease.index,
                                         found.lease.count, found.lease.epoch, found.lease.first)};
      });
    case RunRecordKind::lost:
      return experiment::decode_lost(record).map([](const experiment::LostRecord& found) {
        return Shown{.member = fmt::format("worker{}", found.worker),
                     .text = fmt::format("lost, with {} unfinished leases{}", found.leases.size(),
                                         found.again ? ", which are granted again" : "")};
      });
    case RunRecordKind::absent:
      return experiment::decode_absent(record).map([](const experiment::AbsentRecord& found) {
        return Shown{.member = fmt::format("worker{}", found.worker), .text = "not there when the run began"};
      });
    case RunRecordKind::plan: return Shown{.text = "the plan of the session"};
    case RunRecordKind::end: return Shown{.text = "the end of the segment"};
  }
  return Shown{.text = fmt::format("a record of kind {:#06x}, of a later version", record.kind)};
}

bool is_member(std::string_view name) {
  if (!name.starts_with("worker") && !name.starts_with("server")) return false;
  name.remove_prefix(std::string_view("worker").size());
  return !name.empty() && name.size() < 10 && std::ranges::all_of(name, [](char c) { return c >= '0' && c <= '9'; });
}

Row row_of(std::int64_t number, const Shown& record, std::int64_t segment, std::uint64_t event,
           const replay::EventFinding& found) {
  return {{"record", number},
          {"member", record.member.empty() ? Row(nullptr) : Row(record.member)},
          {"event", record.is_event ? Row(event) : Row(nullptr)},
          {"text", record.text},
          {"step", record.step ? Row(*record.step) : Row(nullptr)},
          {"slot", record.slot.empty() ? Row(nullptr) : Row(record.slot)},
          {"hash", record.hash ? Row(fmt::format("{:016x}", *record.hash)) : Row(nullptr)},
          {"until", record.is_event ? Row(fmt::format("{}/{}#{}", segment, record.member, event)) : Row(nullptr)},
          {"replay", row_of(found)}};
}

/// One page of a segment.
class Page {
 public:
  /// `bytes`: of the segment's file. All that is passed by reference outlives the page.
  Page(const JournalQuestion& question, std::int64_t segment, std::vector<std::int64_t> segments,
       const std::vector<replay::Verification>& replays, std::uint64_t bytes)
      : question_(question), segment_(segment), segments_(std::move(segments)), replays_(replays), bytes_(bytes) {}

  /// Reads from `begin` on, and remembers places in `places` if it is there.
  core::Result<Row> read(core::JournalScanner& scanner, JournalPlace begin, JournalPlaces* places,
                         const JournalFile& file, const std::stop_token& stop) {
    if (begin.record > 0) scanner.seek(begin.offset, static_cast<std::uint64_t>(begin.record));
    auto here = std::move(begin);  // as things are before the next record
    core::JournalRecord record;
    for (;; ++here.record) {
      if (stop.stop_requested()) return core::fail(Errc::interrupted, "interrupted");
      here.offset = scanner.offset();
      if (here.offset > question_.most_bytes) {
        cut_off_ = true;
        break;
      }
      const auto there = scanner.next(record);
      if (!there) return tl::unexpected(there.error());
      if (!*there) break;
      if (places != nullptr) places->remember(file, here);
      complete_ = record.kind == static_cast<std::uint16_t>(RunRecordKind::end);
      const auto found = shown(record);
      if (!found) return tl::unexpected(found.error());
      if (!take(*found, here)) break;
    }
    return Row{{"segments", segments_},
               {"segment", segment_},
               {"events", events_},
               {"next", next_},
               {"complete", complete_},
               {"cut_off", cut_off_},
               {"replay", row_of(replay::newest_of(replays_, segment_, bytes_))}};
  }

 private:
  /// Counts the record, which is that of `here`, and shows it if the question is about it. False: the page is full.
  bool take(const Shown& found, JournalPlace& here) {
    const auto step = found.step ? static_cast<std::int64_t>(*found.step) : JournalPlace::kNoStep;
    here.highest_step = std::max(here.highest_step, step);
    const auto event = found.is_event ? here.counts[found.member]++ : 0;
    if (here.record < question_.from || (!question_.member.empty() && found.member != question_.member)) return true;
    begun_ = begun_ || !question_.step || (found.step && step >= *question_.step);
    if (!begun_) return true;
    if (static_cast<std::int64_t>(events_.size()) == question_.limit) {
      next_ = here.record;
      complete_ = false;
      return false;
    }
    events_.push_back(row_of(here.record, found, segment_, event,
                             found.is_event ? replay::newest_about(replays_, segment_, bytes_, found.member, event)
                                            : replay::EventFinding{}));
    return true;
  }

  const JournalQuestion& question_;
  std::int64_t segment_;
  std::vector<std::int64_t> segments_;
  const std::vector<replay::Verification>& replays_;
  std::uint64_t bytes_;
  Row events_ = Row::array(), next_ = nullptr;
  bool complete_ = false, cut_off_ = false, begun_ = false;
};

}  // namespace

core::Result<nlohmann::ordered_json> list_events(const std::string& directory, const JournalQuestion& question,
                                                 const std::stop_token& stop, JournalPlaces* places) {
  if (!question.member.empty() && !is_member(question.member))
    return core::fail(Errc::usage, "member: write it like worker1 or server0");
  const auto opened = store::open_run_directory(directory, question.run);
  if (!opened) return tl::unexpected(opened.error());
  const auto segments = segments_in(opened->run.get());
  if (segments.empty())
    return Row{{"segments", segments}, {"segment", nullptr}, {"events", Row::array()}, {"next", nullptr},
               {"complete", false},    {"cut_off", false},   {"replay", nullptr}};
  const auto segment = question.segment > 0 ? question.segment : segments.back();
  const auto name = fmt::format("journal-{:04}.bin", segment);
  const auto open_file = [&] {
    return core::FileDescriptor(
        ::openat(opened->run.get(), name.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  };
  auto file = open_file();
  struct stat status {};
  if (!file || ::fstat(file.get(), &status) != 0 || !S_ISREG(status.st_mode))
    return core::fail(Errc::config, fmt::format("{} has no journal segment {}", question.run, segment));
  const auto replays = replays_in(opened->run.get());
  const auto identity = JournalPlaces::file_of(file.get());
  if (!identity) places = nullptr;  // it cannot be told from another file that comes in its place
  for (bool remembered = places != nullptr;; remembered = false) {
    auto begin = remembered ? places->before(*identity, question.from, question.step) : JournalPlace{};
    const bool from_place = begin.record > 0;
    auto scanner = core::JournalScanner::open(file.release(), question.run + "/" + name);
    if (!scanner) return tl::unexpected(scanner.error());
    auto page = Page(question, segment, segments, replays, static_cast<std::uint64_t>(status.st_size))
                    .read(*scanner, std::move(begin), places, identity.value_or(JournalFile{}), stop);
    if (page || !from_place || page.error().code != Errc::corrupt) return page;
    places->forget(*identity);  // it may have been written anew: what is damaged shows from the segment's begin on
    file = open_file();
    if (!file) return core::fail(Errc::config, fmt::format("{} has no journal segment {}", question.run, segment));
  }
}

}  // namespace troupe::service
