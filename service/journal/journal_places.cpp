#include "service/journal/journal_places.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <algorithm>
#include <utility>

namespace troupe::service {

std::optional<JournalFile> JournalPlaces::file_of(int descriptor) {
  struct statx status {};
  if (::statx(descriptor, "", AT_EMPTY_PATH, STATX_INO | STATX_BTIME, &status) != 0 ||
      (status.stx_mask & STATX_BTIME) == 0)
    return std::nullopt;
  return JournalFile{.device = makedev(status.stx_dev_major, status.stx_dev_minor),
                     .inode = status.stx_ino,
                     .born = status.stx_btime.tv_sec * 1'000'000'000 + status.stx_btime.tv_nsec};
}

JournalPlaces::Known* JournalPlaces::find(const JournalFile& file) {
  const auto found = std::ranges::find(files_, file, &Known::file);
  if (found == files_.end()) return nullptr;
  files_.splice(files_.begin(), files_, found);
  return &files_.front();
}

JournalPlace JournalPlaces::before(const JournalFile& file, std::int64_t from,
                                   const std::optional<std::int64_t>& step) {
  const std::lock_guard lock(mutex_);
  const auto* known = find(file);
  if (known == nullptr) return {};
  // Both grow from place to place.
  const auto after = std::ranges::partition_point(known->places, [&](const JournalPlace& place) {
    return place.record <= from || (step && place.highest_step < *step);
  });
  return after == known->places.begin() ? JournalPlace{} : *std::prev(after);
}

void JournalPlaces::remember(const JournalFile& file, const JournalPlace& place) {
  if (place.record == 0 || place.record % every_ != 0) return;
  const std::lock_guard lock(mutex_);
  auto* known = find(file);
  if (known == nullptr) {
    files_.push_front({.file = file, .every = every_});
    known = &files_.front();
    if (files_.size() > kMostFiles) files_.pop_back();
  }
  const bool newer = known->places.empty() || place.record > known->places.back().record;
  if (!newer || place.record % known->every != 0) return;
  known->places.push_back(place);
  known->entries += place.counts.size();
  while (known->places.size() > kMostPlaces || (known->entries > kMostEntries && known->places.size() > 1))
    thin(*known);
}

void JournalPlaces::thin(Known& known) {
  known.every *= 2;
  std::erase_if(known.places, [&](const JournalPlace& place) { return place.record % known.every != 0; });
  known.entries = 0;
  for (const auto& place : known.places) known.entries += place.counts.size();
}

void JournalPlaces::forget(const JournalFile& file) {
  const std::lock_guard lock(mutex_);
  files_.remove_if([&](const Known& known) { return known.file == file; });
}

std::size_t JournalPlaces::known(const JournalFile& file) {
  const std::lock_guard lock(mutex_);
  const auto* found = find(file);
  return found == nullptr ? 0 : found->places.size();
}

}  // namespace troupe::service
