#include "actors/journal_keeper.hpp"

#include <filesystem>
#include <utility>

#include <fmt/format.h>

#include "nn/file_system.hpp"

namespace troupe::actors {

namespace fs = std::filesystem;

namespace {

// Two whole segments and the one being written are about what the policy allows.
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
    : directory_(std::move(directory)), policy_(policy), config_(std::move(config)), plan_(std::move(plan)) {}

core::Result<void> JournalKeeper::open(const std::string& start) {
  auto segment = directory_->next_journal();
  if (!segment) return tl::unexpected(segment.error());
  // Whatever of this segment a session has left that was killed, or had no room, before its journal began: it is replaced.
  if (!start.empty()) {
    const fs::path to(segment->start);
    if (auto copied = nn::replace_by_copy(nn::system_files(), start, to.parent_path().string(), to.filename().string());
        !copied)
      return copied;
  }
  if (auto written = write_copies(*segment); !written) return written;
  auto writer = core::JournalWriter::create(segment->path);
  if (!writer) return tl::unexpected(writer.error());
  writer_.emplace(std::move(*writer));
  return {};
}

/// Before the segment itself: none is ever without.
core::Result<void> JournalKeeper::write_copies(const experiment::JournalSegment& segment) const {
  return directory_->write_config(segment, config_).and_then([&] { return directory_->write_plan(segment, plan_); });
}

core::Result<void> JournalKeeper::append(const JournalRecords& records) {
  if (writer_ && held_) {
    held_bytes_ += records.bytes.size();
    if (held_bytes_ <= kMostHeld) return held_->push_back(records), core::Result<void>();
    writer_.reset();
    return core::fail(
        core::Errc::timeout,
        fmt::format("what a segment begins with is not on disk, and {} bytes of records wait for it", held_bytes_));
  }
  std::size_t offset = 0;
  for (std::size_t i = 0; i < records.kinds.size() && writer_; ++i) {
    const auto bytes = std::as_bytes(std::span(records.bytes).subspan(offset, records.sizes[i]));
    offset += records.sizes[i];
    if (auto appended = writer_->append(records.kinds[i], bytes); !appended) {
      writer_.reset();
      return appended;
    }
  }
  return {};
}

core::Result<void> JournalKeeper::flush() {
  if (!writer_) return {};
  auto flushed = writer_->flush();
  if (!flushed) writer_.reset();
  return flushed;
}

core::Result<void> JournalKeeper::close() {
  if (!writer_) return {};
  auto closed = writer_->append(static_cast<std::uint16_t>(experiment::RunRecordKind::end), {});
  if (closed) closed = writer_->flush();
  writer_.reset();
  return closed;
}

core::Result<std::optional<experiment::JournalSegment>> JournalKeeper::hold() {
  if (!writer_) return std::nullopt;
  auto segment = directory_->next_journal();
  if (!segment) return tl::unexpected(segment.error());
  held_.emplace();
  held_bytes_ = 0;
  return std::optional(std::move(*segment));
}

core::Result<void> JournalKeeper::write_beginning(const experiment::JournalSegment& segment, const Checkpoint& start,
                                                  nn::FileSystem& files) const {
  return experiment::save_start(segment.start, start, files).and_then([&] { return write_copies(segment); });
}

core::Result<void> JournalKeeper::begin(const experiment::JournalSegment& segment) {
  if (!writer_) return held_.reset(), core::Result<void>();  // it has ended meanwhile
  auto writer = core::JournalWriter::create(segment.path);
  if (!writer) return tl::unexpected(writer.error());
  if (auto closed = close(); !closed) return closed;
  writer_.emplace(std::move(*writer));
  told_ = false;
  auto written = write_held();
  remove_old();
  return written;
}

core::Result<void> JournalKeeper::resume() { return write_held(); }

core::Result<void> JournalKeeper::write_held() {
  if (!held_) return {};
  const auto held = *std::exchange(held_, std::nullopt);
  for (const auto& records : held)
    if (auto appended = append(records); !appended) return appended;
  return {};
}

bool JournalKeeper::full() {
  if (!writer_ || held_ || policy_.bytes == 0 || told_ || writer_->bytes() < policy_.bytes / kSegments) return false;
  return told_ = true;
}

/// The newest whole segment stays, however large: with it gone there would be nothing to replay.
void JournalKeeper::remove_old() const {
  if (policy_.bytes == 0) return;  // all of them stay
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
