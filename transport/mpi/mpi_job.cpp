#include "transport/mpi/mpi_job.hpp"

#include <algorithm>
#include <chrono>
#include <limits>
#include <thread>
#include <utility>

#include <fmt/format.h>

namespace troupe::transport {

/// The memory that MPI reads and writes during a collective call.
struct MpiJob::Words {
  MPI_Request request = MPI_REQUEST_NULL;
  std::uint64_t length = 0;
  std::vector<int> lengths, offsets;  // by rank
  std::string text;                   // of this rank
  std::string all;                    // the texts of all ranks, concatenated
};

core::Result<std::unique_ptr<Job>> MpiJob::join() {
  auto hub = MpiHub::get();
  if (!hub) return tl::unexpected(hub.error());
  return std::unique_ptr<Job>(new MpiJob(std::move(*hub)));
}

MpiJob::MpiJob(std::shared_ptr<MpiHub> hub) : hub_(std::move(hub)) {
  MPI_Comm_dup(MPI_COMM_WORLD, &words_);
  MPI_Comm_set_errhandler(words_, MPI_ERRORS_RETURN);
}

core::Result<void> MpiJob::finish(const std::shared_ptr<Words>& words, const GiveUp& give_up) {
  constexpr unsigned kLongestNapMs = 20;
  const auto failed = [&](core::Errc code, const char* why) {
    hub_->keep(words);  // MPI may still write there
    abandon();
    return core::fail(code, why);
  };
  for (unsigned naps = 0;; ++naps) {
    int ended = 0;
    if (MPI_Test(&words->request, &ended, MPI_STATUS_IGNORE) != MPI_SUCCESS)
      return failed(core::Errc::peer_lost, "MPI has lost a rank of the job");
    if (ended) return {};
    if (give_up()) return failed(core::Errc::timeout, "a rank of the job no longer answers");
    std::this_thread::sleep_for(std::chrono::milliseconds(std::min(naps, kLongestNapMs)));
  }
}

core::Result<std::string> MpiJob::broadcast(std::string text, const GiveUp& give_up) {
  const auto words = std::make_shared<Words>();
  words->length = text.size();
  MPI_Ibcast(&words->length, 1, MPI_UINT64_T, 0, words_, &words->request);
  if (auto known = finish(words, give_up); !known) return tl::unexpected(known.error());
  words->text = std::move(text);
  words->text.resize(words->length);
  MPI_Ibcast(words->text.data(), static_cast<int>(words->length), MPI_CHAR, 0, words_, &words->request);
  if (auto said = finish(words, give_up); !said) return tl::unexpected(said.error());
  return std::move(words->text);
}

core::Result<std::vector<std::string>> MpiJob::gather(std::string text, const GiveUp& give_up) {
  const auto words = std::make_shared<Words>();
  words->text = std::move(text);
  const int mine = static_cast<int>(words->text.size());
  words->length = words->text.size();
  words->lengths.resize(size());
  words->offsets.resize(size());
  words->all.resize(size() * sizeof(std::uint64_t));
  MPI_Igather(&words->length, 1, MPI_UINT64_T, words->all.data(), 1, MPI_UINT64_T, 0, words_, &words->request);
  if (auto known = finish(words, give_up); !known) return tl::unexpected(known.error());
  std::size_t whole = 0;
  for (std::size_t r = 0; rank() == 0 && r < size(); ++r) {
    std::uint64_t length = 0;
    std::copy_n(words->all.data() + r * sizeof length, sizeof length, reinterpret_cast<char*>(&length));
    words->lengths[r] = static_cast<int>(length);
    words->offsets[r] = static_cast<int>(whole);
    whole += length;
  }
  words->all.resize(whole);
  MPI_Igatherv(words->text.data(), mine, MPI_CHAR, words->all.data(), words->lengths.data(), words->offsets.data(),
               MPI_CHAR, 0, words_, &words->request);
  if (auto said = finish(words, give_up); !said) return tl::unexpected(said.error());
  std::vector<std::string> texts;
  for (std::size_t r = 0; rank() == 0 && r < size(); ++r)
    texts.push_back(
        words->all.substr(static_cast<std::size_t>(words->offsets[r]), static_cast<std::size_t>(words->lengths[r])));
  return texts;
}

core::Result<std::uint64_t> MpiJob::largest(std::uint64_t value, const GiveUp& give_up) {
  const auto words = std::make_shared<Words>();
  words->length = value;
  MPI_Iallreduce(MPI_IN_PLACE, &words->length, 1, MPI_UINT64_T, MPI_MAX, words_, &words->request);
  if (auto known = finish(words, give_up); !known) return tl::unexpected(known.error());
  return words->length;
}

core::Result<void> MpiJob::read_together(const FilePart& part, std::size_t piece, const TakeBytes& take,
                                         const GiveUp& give_up) {
  const auto bytes = part.end - std::min(part.begin, part.end);
  piece = std::clamp<std::size_t>(piece, 1, std::numeric_limits<int>::max());
  const auto rounds = largest((bytes + piece - 1) / piece, give_up);
  if (!rounds) return tl::unexpected(rounds.error());
  MPI_File file = MPI_FILE_NULL;  // opened with MPI's default for files: errors are returned
  const bool opened = MPI_File_open(words_, part.path.c_str(), MPI_MODE_RDONLY, MPI_INFO_NULL, &file) == MPI_SUCCESS;
  const auto failed = largest(opened ? 0 : 1, give_up);  // a rank without the file would not take part in the reads
  if (!failed) return tl::unexpected(failed.error());
  // Not closed then: that is collective, too.
  if (*failed != 0) return core::fail(core::Errc::io, fmt::format("a rank of the job cannot open {}", part.path));
  core::Result<void> result;
  std::vector<std::byte> buffer(static_cast<std::size_t>(std::min<std::uint64_t>(piece, bytes)));
  for (std::uint64_t round = 0; round < *rounds; ++round) {
    const auto offset = std::min(part.begin + round * piece, part.end);
    const auto wanted = static_cast<int>(std::min<std::uint64_t>(piece, part.end - offset));
    MPI_Status status;
    int got = 0;
    const bool read = MPI_File_read_at_all(file, static_cast<MPI_Offset>(offset), buffer.data(), wanted, MPI_BYTE,
                                           &status) == MPI_SUCCESS &&
                      MPI_Get_count(&status, MPI_BYTE, &got) == MPI_SUCCESS && got == wanted;
    if (!read && result)
      result =
          core::fail(core::Errc::io, fmt::format("{}: {} bytes at byte {} cannot be read", part.path, wanted, offset));
    if (result && wanted > 0) result = take(offset, std::span(buffer).first(static_cast<std::size_t>(wanted)));
  }
  MPI_File_close(&file);
  return result;
}

}  // namespace troupe::transport
