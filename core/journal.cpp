#include "core/journal.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <optional>
#include <utility>

#include <fmt/format.h>
#include <xxhash.h>

#include "core/journal_scanner.hpp"

namespace troupe::core {
namespace {

// Numbers are little-endian, like all supported machines; docs/formats/journal.md.
constexpr std::array<char, 8> kMagic = {'T', 'R', 'P', 'J', 'R', 'N', 'L', '\n'};
constexpr std::size_t kFileHeader = kMagic.size() + sizeof(kJournalVersion);
constexpr std::size_t kRecordHeader = 4 + 2 + 4;  // length, kind, check of both
constexpr std::size_t kRecordTail = 8;            // checksum
constexpr std::size_t kMaxPayload = std::size_t{16} << 20;
constexpr std::size_t kBuffered = std::size_t{64} << 10;

template <class T>
void put(std::vector<std::byte>& to, T value) {
  const auto* bytes = reinterpret_cast<const std::byte*>(&value);
  to.insert(to.end(), bytes, bytes + sizeof(value));
}

template <class T>
T get(const std::byte* from) {
  T value;
  std::memcpy(&value, from, sizeof(value));
  return value;
}

/// Over (length, kind, sequence): detects moved, repeated and missing records too.
std::uint32_t head_check(std::uint32_t length, std::uint16_t kind, std::uint64_t sequence) {
  std::array<std::byte, 14> bytes;
  std::memcpy(bytes.data(), &length, 4);
  std::memcpy(bytes.data() + 4, &kind, 2);
  std::memcpy(bytes.data() + 6, &sequence, 8);
  return static_cast<std::uint32_t>(XXH3_64bits(bytes.data(), bytes.size()));
}

/// Over (length, kind, sequence, payload).
std::uint64_t checksum(std::uint32_t length, std::uint16_t kind, std::uint64_t sequence,
                       std::span<const std::byte> payload) {
  const std::uint64_t seed = (std::uint64_t{kind} << 32 | length) ^ sequence * 0x9E3779B97F4A7C15u;
  return XXH3_64bits_withSeed(payload.data(), payload.size(), seed);
}

class File {
 public:
  explicit File(int descriptor) noexcept : descriptor_(descriptor) {}
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  ~File() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }
  [[nodiscard]] int get() const noexcept { return descriptor_; }

 private:
  int descriptor_;
};

}  // namespace

struct JournalWriter::State {
  State(int descriptor, std::string name) : file(descriptor), path(std::move(name)) {}

  /// Writes the buffer to the system. A failure is kept: records after a gap could not be read.
  Result<void> write_out() {
    std::size_t done = 0;
    while (!failure && done < pending.size()) {
      const ssize_t n = ::write(file.get(), pending.data() + done, pending.size() - done);
      if (n >= 0)
        done += static_cast<std::size_t>(n);
      else if (errno != EINTR)
        failure = from_errno(errno, "write", path);
    }
    pending.clear();
    if (failure) return tl::unexpected(*failure);
    return {};
  }

  File file;
  std::string path;
  std::vector<std::byte> pending;
  std::uint64_t sequence = 0;
  std::uint64_t appended = 0;
  std::optional<Error> failure;
};

JournalWriter::JournalWriter(std::unique_ptr<State> state) noexcept : state_(std::move(state)) {}
JournalWriter::JournalWriter(JournalWriter&&) noexcept = default;
JournalWriter& JournalWriter::operator=(JournalWriter&& other) noexcept {
  JournalWriter taken(std::move(other));
  std::swap(state_, taken.state_);
  return *this;
}

JournalWriter::~JournalWriter() {
  if (state_) (void)state_->write_out();  // a destructor cannot report an error
}

Result<JournalWriter> JournalWriter::create(const std::string& path) {
  const int descriptor = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
  if (descriptor < 0) return tl::unexpected(from_errno(errno, "create", path));
  auto state = std::make_unique<State>(descriptor, path);
  for (const char c : kMagic) put(state->pending, c);
  put(state->pending, kJournalVersion);
  state->appended = kFileHeader;
  return JournalWriter(std::move(state));
}

Result<void> JournalWriter::append(std::uint16_t kind, std::span<const std::byte> payload) {
  State& s = *state_;
  if (s.failure) return tl::unexpected(*s.failure);
  if (payload.size() > kMaxPayload)
    return fail(Errc::internal,
                fmt::format("{}: record of {} bytes, at most {} fit", s.path, payload.size(), kMaxPayload));
  const auto length = static_cast<std::uint32_t>(payload.size());
  put(s.pending, length);
  put(s.pending, kind);
  put(s.pending, head_check(length, kind, s.sequence));
  s.pending.insert(s.pending.end(), payload.begin(), payload.end());
  put(s.pending, checksum(length, kind, s.sequence, payload));
  ++s.sequence;
  s.appended += kRecordHeader + payload.size() + kRecordTail;
  if (s.pending.size() >= kBuffered) return s.write_out();
  return {};
}

Result<void> JournalWriter::flush() { return state_->write_out(); }

std::uint64_t JournalWriter::bytes() const noexcept { return state_->appended; }

namespace {

Result<std::vector<std::byte>> read_file(const std::string& path) {
  const File file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (file.get() < 0) return tl::unexpected(from_errno(errno, "open", path));
  std::vector<std::byte> bytes;
  std::size_t size = 0;
  for (;;) {
    if (bytes.size() - size < kBuffered) bytes.resize(2 * bytes.size() + kBuffered);
    const ssize_t n = ::read(file.get(), bytes.data() + size, bytes.size() - size);
    if (n == 0) break;
    if (n > 0)
      size += static_cast<std::size_t>(n);
    else if (errno != EINTR)
      return tl::unexpected(from_errno(errno, "read", path));
  }
  bytes.resize(size);
  return bytes;
}

tl::unexpected<Error> damaged(const std::string& path, std::size_t begin, std::size_t end, std::string_view what) {
  return fail(Errc::corrupt, fmt::format("{}: bytes {} to {}: {}; restore the file, or start from a checkpoint", path,
                                         begin, end - 1, what));
}

}  // namespace

Result<JournalContents> read_journal(const std::string& path) {
  auto file = read_file(path);
  if (!file) return tl::unexpected(std::move(file.error()));
  const std::vector<std::byte>& bytes = *file;

  std::vector<std::byte> header;
  for (const char c : kMagic) put(header, c);
  if (std::memcmp(bytes.data(), header.data(), std::min(header.size(), bytes.size())) != 0)
    return damaged(path, 0, kMagic.size(), "not a Troupe journal");
  JournalContents contents;
  if (bytes.size() < kFileHeader) {
    contents.cut_off = true;
    return contents;
  }
  contents.version = get<std::uint32_t>(&bytes[kMagic.size()]);
  if (contents.version < 1 || contents.version > kJournalVersion)
    return damaged(path, kMagic.size(), kFileHeader,
                   fmt::format("this Troupe reads journals of versions 1 to {}", kJournalVersion));

  std::size_t offset = kFileHeader;
  for (std::uint64_t sequence = 0; offset < bytes.size(); ++sequence) {
    contents.cut_off = true;  // until the record is known to be whole
    const std::size_t left = bytes.size() - offset;
    if (left < kRecordHeader) return contents;
    const auto length = get<std::uint32_t>(&bytes[offset]);
    const auto kind = get<std::uint16_t>(&bytes[offset + 4]);
    // Checked separately: a flipped length must not look like a file that was cut off.
    if (get<std::uint32_t>(&bytes[offset + 6]) != head_check(length, kind, sequence) || length > kMaxPayload)
      return damaged(path, offset, offset + kRecordHeader, fmt::format("head of record {} is damaged", sequence));
    const std::size_t size = kRecordHeader + length + kRecordTail;
    if (left < size) return contents;
    const std::span payload(bytes.data() + offset + kRecordHeader, length);
    if (get<std::uint64_t>(&bytes[offset + kRecordHeader + length]) != checksum(length, kind, sequence, payload))
      return damaged(path, offset, offset + size, fmt::format("record {} fails its checksum", sequence));
    contents.records.push_back({kind, {payload.begin(), payload.end()}});
    offset += size;
    contents.cut_off = false;
  }
  return contents;
}

JournalScanner::JournalScanner(JournalScanner&& other) noexcept
    : file_(std::exchange(other.file_, -1)),
      name_(std::move(other.name_)),
      buffer_(std::move(other.buffer_)),
      begin_(other.begin_),
      offset_(other.offset_),
      sequence_(other.sequence_) {}

JournalScanner::~JournalScanner() {
  if (file_ >= 0) ::close(file_);
}

Result<JournalScanner> JournalScanner::open(int file, std::string name) {
  JournalScanner scanner(file, std::move(name));
  const auto whole = scanner.fill(kFileHeader);
  if (!whole) return tl::unexpected(whole.error());
  if (!*whole) return scanner;  // offset_ stays 0: next() has nothing
  if (std::memcmp(scanner.buffer_.data(), kMagic.data(), kMagic.size()) != 0)
    return damaged(scanner.name_, 0, kMagic.size(), "not a Troupe journal");
  if (const auto version = get<std::uint32_t>(scanner.buffer_.data() + kMagic.size());
      version < 1 || version > kJournalVersion)
    return damaged(scanner.name_, kMagic.size(), kFileHeader,
                   fmt::format("this Troupe reads journals of versions 1 to {}", kJournalVersion));
  scanner.begin_ = kFileHeader;
  scanner.offset_ = kFileHeader;
  return scanner;
}

void JournalScanner::seek(std::uint64_t offset, std::uint64_t number) {
  if (offset_ < kFileHeader) return;  // there is no record yet
  buffer_.clear();
  begin_ = 0;
  offset_ = offset;
  sequence_ = number;
}

Result<bool> JournalScanner::fill(std::size_t bytes) {
  while (buffer_.size() - begin_ < bytes) {
    buffer_.erase(buffer_.begin(), buffer_.begin() + static_cast<std::ptrdiff_t>(begin_));
    begin_ = 0;
    const auto held = buffer_.size();
    buffer_.resize(held + std::max(bytes - held, kBuffered));
    const auto n = ::pread(file_, buffer_.data() + held, buffer_.size() - held, static_cast<off_t>(offset_ + held));
    buffer_.resize(held + static_cast<std::size_t>(std::max<ssize_t>(n, 0)));
    if (n < 0 && errno != EINTR) return tl::unexpected(from_errno(errno, "read", name_));
    if (n == 0) return false;
  }
  return true;
}

Result<bool> JournalScanner::next(JournalRecord& record) {
  if (offset_ < kFileHeader) return false;
  if (const auto there = fill(kRecordHeader); !there || !*there) return there;
  const auto length = get<std::uint32_t>(&buffer_[begin_]);
  const auto kind = get<std::uint16_t>(&buffer_[begin_ + 4]);
  if (get<std::uint32_t>(&buffer_[begin_ + 6]) != head_check(length, kind, sequence_) || length > kMaxPayload)
    return damaged(name_, offset_, offset_ + kRecordHeader, fmt::format("head of record {} is damaged", sequence_));
  const std::size_t size = kRecordHeader + length + kRecordTail;
  if (const auto there = fill(size); !there || !*there) return there;
  const std::span payload(buffer_.data() + begin_ + kRecordHeader, length);
  if (get<std::uint64_t>(&buffer_[begin_ + kRecordHeader + length]) != checksum(length, kind, sequence_, payload))
    return damaged(name_, offset_, offset_ + size, fmt::format("record {} fails its checksum", sequence_));
  record.kind = kind;
  record.payload.assign(payload.begin(), payload.end());
  begin_ += size;
  offset_ += size;
  ++sequence_;
  return true;
}

}  // namespace troupe::core
