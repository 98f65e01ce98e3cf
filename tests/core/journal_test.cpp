#include "core/journal.hpp"

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include <gtest/gtest.h>

#include "core/journal_scanner.hpp"

namespace troupe::core {
namespace {

namespace fs = std::filesystem;

std::vector<std::byte> bytes_of(std::string_view text) {
  std::vector<std::byte> bytes(text.size());
  std::memcpy(bytes.data(), text.data(), text.size());
  return bytes;
}

class Journal : public ::testing::Test {
 protected:
  void SetUp() override {
    directory_ = fs::temp_directory_path() / ("troupe-journal-" + std::to_string(::getpid()));
    fs::remove_all(directory_);
    fs::create_directories(directory_);
  }
  void TearDown() override { fs::remove_all(directory_); }

  [[nodiscard]] std::string path(const std::string& name) const { return (directory_ / name).string(); }

  void write(const std::string& name, std::string_view content) const {
    std::ofstream(path(name), std::ios::binary) << content;
  }
  [[nodiscard]] std::string read(const std::string& name) const {
    std::ifstream file(path(name), std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  /// Three records of 3, 0 and 17 bytes: 12 + (18 + 3) + 18 + (18 + 17) = 86 bytes.
  [[nodiscard]] std::string sample() const {
    {
      auto writer = JournalWriter::create(path("sample")).value();
      EXPECT_TRUE(writer.append(1, bytes_of("abc")));
      EXPECT_TRUE(writer.append(0xffff, {}));
      EXPECT_TRUE(writer.append(7, bytes_of("seventeen letters")));
      EXPECT_EQ(writer.bytes(), 86u);
    }
    return read("sample");
  }

  fs::path directory_;
};

TEST_F(Journal, ReadsBackWhatWasWritten) {
  ASSERT_EQ(sample().size(), 86u);
  const auto contents = read_journal(path("sample"));
  ASSERT_TRUE(contents) << contents.error().message;
  ASSERT_EQ(contents->records.size(), 3u);
  EXPECT_EQ(contents->records[0].kind, 1);
  EXPECT_EQ(contents->records[0].payload, bytes_of("abc"));
  EXPECT_EQ(contents->records[1].kind, 0xffff);
  EXPECT_TRUE(contents->records[1].payload.empty());
  EXPECT_EQ(contents->records[2].kind, 7);
  EXPECT_EQ(contents->records[2].payload, bytes_of("seventeen letters"));
  EXPECT_FALSE(contents->cut_off);
}

// The layout of docs/formats/journal.md, by hand up to the checksums.
TEST_F(Journal, HasTheDocumentedLayout) {
  const std::string file = sample();
  EXPECT_EQ(file.substr(0, 12), std::string("TRPJRNL\n\2\0\0\0", 12));
  EXPECT_EQ(file.substr(12, 6), std::string("\3\0\0\0\1\0", 6));      // length 3, kind 1
  EXPECT_EQ(file.substr(22, 3), "abc");                               // after 4 bytes of head check
  EXPECT_EQ(file.substr(33, 6), std::string("\0\0\0\0\377\377", 6));  // length 0, kind 65535, after 8 bytes of checksum
}

TEST_F(Journal, ATruncationAtAnyByteGivesTheWholeRecordsBefore) {
  const std::string file = sample();
  const std::size_t ends[] = {12, 33, 51, 86};  // header, records 0 to 2
  for (std::size_t size = 0; size < file.size(); ++size) {
    write("cut", std::string_view(file).substr(0, size));
    const auto contents = read_journal(path("cut"));
    ASSERT_TRUE(contents) << size << ": " << contents.error().message;
    std::size_t whole = 0, valid = 0;
    for (std::size_t i = 0; i < std::size(ends); ++i)
      if (ends[i] <= size) {
        whole = i;
        valid = ends[i];
      }
    EXPECT_EQ(contents->records.size(), whole) << size;
    EXPECT_EQ(contents->cut_off, size != valid || size == 0) << size;
  }
}

TEST_F(Journal, AnyFlippedBitIsCorruptAndLocated) {
  const std::string file = sample();
  for (std::size_t byte = 0; byte < file.size(); ++byte) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string flipped = file;
      flipped[byte] = static_cast<char>(flipped[byte] ^ 1 << bit);
      write("flipped", flipped);
      const auto contents = read_journal(path("flipped"));
      ASSERT_FALSE(contents) << "byte " << byte << " bit " << bit;
      EXPECT_EQ(contents.error().code, Errc::corrupt);
      const std::string& message = contents.error().message;
      EXPECT_EQ(message.find(path("flipped") + ": bytes "), 0u) << message;
      const std::size_t begin = std::stoul(message.substr(path("flipped").size() + 8));
      const std::size_t end = std::stoul(message.substr(message.find(" to ") + 4));
      EXPECT_LE(begin, byte) << message;
      EXPECT_GE(end, byte) << message;
    }
  }
}

TEST_F(Journal, CorruptionMessagesNameDamageAndOffset) {
  std::string file = sample();
  write("text", "epoch,loss\n1,0.5\n");
  EXPECT_EQ(read_journal(path("text")).error().message,
            path("text") + ": bytes 0 to 7: not a Troupe journal; restore the file, or start from a checkpoint");
  std::string newer = file;
  newer[8] = 3;
  write("newer", newer);
  EXPECT_EQ(read_journal(path("newer")).error().message,
            path("newer") +
                ": bytes 8 to 11: this Troupe reads journals of versions 1 "
                "to 2; restore the file, or start from a checkpoint");
  std::string payload = file;
  payload[23] = 'x';
  write("payload", payload);
  EXPECT_EQ(
      read_journal(path("payload")).error().message,
      path("payload") + ": bytes 12 to 32: record 0 fails its checksum; restore the file, or start from a checkpoint");
  std::string head = file;
  head[33] = 1;
  write("head", head);
  EXPECT_EQ(
      read_journal(path("head")).error().message,
      path("head") + ": bytes 33 to 42: head of record 1 is damaged; restore the file, or start from a checkpoint");
}

TEST_F(Journal, ARecordInAnotherPlaceIsCorrupt) {
  const std::string file = sample();
  write("left-out", file.substr(0, 12) + file.substr(33));
  EXPECT_EQ(read_journal(path("left-out")).error().code, Errc::corrupt);
  write("repeated", file.substr(0, 33) + file.substr(12));
  EXPECT_EQ(read_journal(path("repeated")).error().code, Errc::corrupt);
}

TEST_F(Journal, WritesThroughAtFlushAndWhenItsBufferIsFull) {
  auto writer = JournalWriter::create(path("live")).value();
  ASSERT_TRUE(writer.append(1, bytes_of("x")));
  EXPECT_EQ(fs::file_size(path("live")), 0u);
  ASSERT_TRUE(writer.flush());
  EXPECT_EQ(fs::file_size(path("live")), writer.bytes());
  ASSERT_TRUE(writer.append(2, std::vector<std::byte>(70'000)));  // more than 64 KiB
  EXPECT_EQ(fs::file_size(path("live")), writer.bytes());
  EXPECT_EQ(read_journal(path("live"))->records.size(), 2u);
}

TEST_F(Journal, TakesRecordsUpToTheLimit) {
  auto writer = JournalWriter::create(path("big")).value();
  const std::vector<std::byte> largest(16u << 20, std::byte{5});
  ASSERT_TRUE(writer.append(1, largest));
  const std::vector<std::byte> over(largest.size() + 1);
  const auto refused = writer.append(1, over);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message, path("big") + ": record of 16777217 bytes, at most 16777216 fit");
  ASSERT_TRUE(writer.append(2, {}));  // the refused append wrote nothing
  ASSERT_TRUE(writer.flush());
  const auto contents = read_journal(path("big"));
  ASSERT_TRUE(contents) << contents.error().message;
  ASSERT_EQ(contents->records.size(), 2u);
  EXPECT_EQ(contents->records[0].payload, largest);
}

TEST_F(Journal, IsNeverOverwritten) {
  write("there", "precious");
  const auto writer = JournalWriter::create(path("there"));
  ASSERT_FALSE(writer);
  EXPECT_EQ(writer.error().code, Errc::io);
  EXPECT_EQ(writer.error().message, "cannot create " + path("there") + ": File exists");
  EXPECT_EQ(read("there"), "precious");
}

TEST_F(Journal, NamesFilesThatCannotBeOpenedOrRead) {
  EXPECT_EQ(read_journal(path("none")).error().message, "cannot open " + path("none") + ": No such file or directory");
  EXPECT_EQ(read_journal(path("")).error().code, Errc::io);  // a directory
  EXPECT_EQ(JournalWriter::create(path("no/such")).error().message,
            "cannot create " + path("no/such") + ": No such file or directory");
}

/// While it lives, files of this process cannot grow beyond `bytes`: imitates a failing disk without privileges.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) {
    ::getrlimit(RLIMIT_FSIZE, &before_);
    handler_ = std::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{bytes, before_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FileSizeLimit() {
    ::setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, handler_);
  }

 private:
  rlimit before_{};
  void (*handler_)(int) = nullptr;
};

TEST_F(Journal, FailedWriteIsReportedFromThenOnAndLeavesAReadableFile) {
  auto writer = JournalWriter::create(path("full")).value();
  ASSERT_TRUE(writer.append(1, bytes_of("abc")));
  ASSERT_TRUE(writer.flush());
  ASSERT_TRUE(writer.append(2, bytes_of("0123456789")));
  std::string message;
  {
    const FileSizeLimit limit(40);  // 7 bytes into record 1
    const auto failed = writer.flush();
    ASSERT_FALSE(failed);
    EXPECT_EQ(failed.error().code, Errc::io);
    message = failed.error().message;
    EXPECT_EQ(message, "cannot write " + path("full") +
                           ": File too large (raise this process's limit on the size of files: `ulimit -f`)");
  }
  // There is room again, but records after a gap could not be read.
  EXPECT_EQ(writer.append(3, {}).error().message, message);
  EXPECT_EQ(writer.flush().error().message, message);
  EXPECT_EQ(fs::file_size(path("full")), 40u);
  const auto contents = read_journal(path("full"));
  ASSERT_TRUE(contents) << contents.error().message;
  EXPECT_EQ(contents->records.size(), 1u);
  EXPECT_TRUE(contents->cut_off);
}

TEST_F(Journal, AMovedWriterGoesOn) {
  {
    auto first = JournalWriter::create(path("moved")).value();
    ASSERT_TRUE(first.append(1, bytes_of("a")));
    JournalWriter second = std::move(first);
    ASSERT_TRUE(second.append(2, bytes_of("b")));
    auto other = JournalWriter::create(path("other")).value();
    ASSERT_TRUE(other.append(9, {}));
    other = std::move(second);  // writes its records and closes
    ASSERT_TRUE(other.append(3, bytes_of("c")));
  }
  EXPECT_EQ(read_journal(path("moved"))->records.size(), 3u);
  EXPECT_EQ(read_journal(path("other"))->records.size(), 1u);
}

/// What a scanner finds in the file; its error ends the list.
std::pair<std::vector<JournalRecord>, std::string> scanned(const std::string& path) {
  std::vector<JournalRecord> records;
  auto scanner = JournalScanner::open(::open(path.c_str(), O_RDONLY | O_CLOEXEC), path);
  if (!scanner) return {records, scanner.error().message};
  for (JournalRecord record;;) {
    const auto there = scanner->next(record);
    if (!there) return {records, there.error().message};
    if (!*there) return {records, ""};
    records.push_back(record);
  }
}

/// Cut off anywhere, or with any bit flipped: the scanner says what read_journal() says.
TEST_F(Journal, AScannerFindsWhatAReaderFinds) {
  const auto whole = sample();
  const auto compare = [&](const std::string& text) {
    write("other", text);
    const auto contents = read_journal(path("other"));
    const auto [records, error] = scanned(path("other"));
    EXPECT_EQ(error, contents ? std::string() : contents.error().message);
    if (!contents) return;
    ASSERT_EQ(records.size(), contents->records.size());
    for (std::size_t i = 0; i < records.size(); ++i) {
      EXPECT_EQ(records[i].kind, contents->records[i].kind);
      EXPECT_EQ(records[i].payload, contents->records[i].payload);
    }
  };
  for (std::size_t size = 12; size <= whole.size(); ++size) compare(whole.substr(0, size));
  for (std::size_t bit = 0; bit < 8 * whole.size(); ++bit) {
    auto text = whole;
    text[bit / 8] = static_cast<char>(text[bit / 8] ^ (1 << (bit % 8)));
    compare(text);
  }
}

TEST_F(Journal, AScannerGoesOnInAFileThatGrows) {
  const auto whole = sample();
  write("growing", whole.substr(0, 50));
  auto scanner = JournalScanner::open(::open(path("growing").c_str(), O_RDONLY | O_CLOEXEC), "growing").value();
  JournalRecord record;
  EXPECT_TRUE(scanner.next(record).value());
  EXPECT_EQ(record.payload.size(), 3u);
  EXPECT_EQ(scanner.offset(), 33u);
  EXPECT_FALSE(scanner.next(record).value()) << "the second record has 18 bytes, and 17 are there";
  write("growing", whole);
  EXPECT_TRUE(scanner.next(record).value());
  EXPECT_TRUE(scanner.next(record).value());
  EXPECT_EQ(record.payload.size(), 17u);
  EXPECT_FALSE(scanner.next(record).value());
}

TEST_F(Journal, AScannerReadsRecordsLongerThanItsBuffer) {
  {
    auto writer = JournalWriter::create(path("long")).value();
    for (int i = 0; i < 5; ++i)
      ASSERT_TRUE(writer.append(1, std::vector<std::byte>(100'000 * static_cast<std::size_t>(i), std::byte{7})));
  }
  const auto [records, error] = scanned(path("long"));
  EXPECT_EQ(error, "");
  ASSERT_EQ(records.size(), 5u);
  EXPECT_EQ(records[4].payload, std::vector<std::byte>(400'000, std::byte{7}));
}

}  // namespace
}  // namespace troupe::core
