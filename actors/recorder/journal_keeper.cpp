#include "actors/recorder/journal_keeper.hpp"

#include <filesystem>
#include <utility>

#include <fmt/format.h>

#include "nn/checkpoint/file_system.hpp"

namespace troupe::actors {

namespace fs = std::filesystem;

namespace {

// Two complete segments and the current one together have about the policy's size.
constexpr std::uint64_t kSegments = 3;

std::uint64_t size_of(const experiment::JournalSegment& segment) {
  std::uint64_t size = 0;
  for (const auto& path : {segment.path, segment.start, segment.config, segment.plan}) {
    std::error_code missing;
    const auto bytes = path.empty() ? 0 : fs::file_size(path, missing);
    if (!missing) size += bytes;
  }
  return size;
}

}  // namespace

JournalKeeper::JournalKeeper(std::shared_ptr<const RunDirectory> directory, experiment::JournalPolicy policy,
                             core::Config config, std::string plan)
    : directory_(std::move(directory)),
      policy_(policy),
      config_(std::move(config)),
      plan_(std::move(plan)),
      full_at_(policy.bytes / kSegments) {}

// ---- records

core::Result<void> JournalKeeper::append(const JournalRecords& records) {
  if (held_.empty()) return write(records);
  held_bytes_ += records.bytes.size();
  if (held_bytes_ <= kMostHeld) {
    held_.back().records.push_back(records);
    return {};
  }
  const auto bytes = held_bytes_;
  end();
  return core::fail(core::Errc::timeout,
                    fmt::format("the segment's start state is not on disk; {} bytes of records wait", bytes));
}

core::Result<void> JournalKeeper::write(const JournalRecords& records) {
  std::size_t offset = 0;
  for (std::size_t i = 0; i < records.kinds.size() && writer_; ++i) {
    const auto bytes = std::as_bytes(std::span(records.bytes).subspan(offset, records.sizes[i]));
    offset += records.sizes[i];
    if (auto appended = writer_->append(records.kinds[i], bytes); !appended) {
      end();
      return appended;
    }
  }
  return {};
}

core::Result<void> JournalKeeper::flush() {
  if (!writer_) return {};
  auto flushed = writer_->flush();
  if (!flushed) end();
  return flushed;
}

core::Result<void> JournalKeeper::close() {
  if (!held_.empty()) {
    end();
    return core::fail(core::Errc::timeout, "what its last segment begins with is not on disk");
  }
  if (!writer_) return {};
  auto closed = writer_->append(static_cast<std::uint16_t>(experiment::RunRecordKind::end), {});
  if (closed) closed = writer_->flush();
  writer_.reset();
  return closed;
}

void JournalKeeper::end() {
  writer_.reset();
  held_.clear();
  held_bytes_ = 0;
}

// ---- segments

core::Result<experiment::JournalSegment> JournalKeeper::next() const {
  if (!held_.empty()) return directory_->segment(held_.back().segment.number + 1);
  return directory_->next_journal();
}

/// The copies are written before the journal file: no segment lacks them.
JournalKeeper::Beginning JournalKeeper::with_copies(const experiment::JournalSegment& segment,
                                                    Beginning write_start) const {
  return [segment, write_start = std::move(write_start), directory = directory_, config = config_, plan = plan_] {
    return write_start().and_then([&] { return directory->write_config(segment, config); }).and_then([&] {
      return directory->write_plan(segment, plan);
    });
  };
}

core::Result<JournalKeeper::Beginning> JournalKeeper::open(const std::string& start_file,
                                                           std::shared_ptr<nn::FileSystem> files) {
  const auto segment = next();
  if (!segment) return tl::unexpected(segment.error());
  held_.push_back({*segment});
  // Replaces files that a session left for this segment when it was killed, or ran out of space, before its journal began.
  return with_copies(*segment, [start_file, to = fs::path(segment->start), files = std::move(files)] {
    if (start_file.empty()) return core::Result<void>();
    return nn::replace_by_copy(*files, start_file, to.parent_path().string(), to.filename().string());
  });
}

core::Result<JournalKeeper::Beginning> JournalKeeper::hold(std::shared_ptr<const Checkpoint> start,
                                                           std::shared_ptr<nn::FileSystem> files) {
  const auto segment = next();
  if (!segment) return tl::unexpected(segment.error());
  held_.push_back({*segment});
  return with_copies(*segment, [path = segment->start, start = std::move(start), files = std::move(files)] {
    return experiment::save_start(path, *start, *files);
  });
}

core::Result<void> JournalKeeper::begin(const core::Result<void>& written) {
  if (held_.empty()) return {};  // the journal has ended meanwhile
  auto writer = written ? core::JournalWriter::create(held_.front().segment.path) : tl::unexpected(written.error());
  const auto share = policy_.bytes / kSegments;
  told_ = false;
  if (!writer) {
    if (writer_) full_at_ = writer_->bytes() + share;  // there may be space by then
    const auto kept = writer_ ? write_oldest() : core::Result<void>();
    if (!writer_) end();
    return kept ? tl::unexpected(writer.error()) : kept;
  }
  core::Result<void> closed;
  if (writer_) {
    closed = writer_->append(static_cast<std::uint16_t>(experiment::RunRecordKind::end), {});
    if (closed) closed = writer_->flush();
  }
  writer_.emplace(std::move(*writer));  // also if the old one lacks records: the new one has its start files
  full_at_ = share;
  const auto kept = write_oldest();
  remove_old();
  return kept ? closed : kept;
}

/// Also flushes: a checkpoint may depend on these records being out of this process.
core::Result<void> JournalKeeper::write_oldest() {
  const auto oldest = std::move(held_.front());
  held_.pop_front();
  for (const auto& records : oldest.records) {
    held_bytes_ -= records.bytes.size();
    if (auto appended = write(records); !appended) return appended;
  }
  return flush();
}

bool JournalKeeper::full() {
  if (!writer_ || !held_.empty() || policy_.bytes == 0 || told_ || writer_->bytes() < full_at_) return false;
  return told_ = true;
}

/// The newest complete segment stays, whatever its size: without it nothing could be replayed.
void JournalKeeper::remove_old() const {
  if (policy_.bytes == 0) return;  // all segments stay
  auto segments = directory_->journals();
  if (!segments) return;
  std::uint64_t total = 0;
  for (const auto& segment : *segments) total += size_of(segment);
  for (std::size_t k = 0; k + 2 < segments->size() && total > policy_.bytes; ++k) {
    const auto& old = (*segments)[k];
    total -= size_of(old);
    std::error_code ignored;
    fs::remove(old.path, ignored);
    for (const auto& beside : {old.start, old.config, old.plan}) {
      if (!beside.empty()) fs::remove(beside, ignored);
    }
  }
}

}  // namespace troupe::actors
