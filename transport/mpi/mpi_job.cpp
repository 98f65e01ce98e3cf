#include "transport/mpi/mpi_job.hpp"

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

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

}  // namespace troupe::transport
