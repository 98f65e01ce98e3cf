/// A guest that has joined: the program's process, its connection, and what the two sides say to each other (docs/formats/guest.md). Thread
/// rule: one thread, the one that starts it.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/kernels.hpp"
#include "guest/description.hpp"
#include "guest/frames.hpp"
#include "guest/process.hpp"
#include "nn/backend.hpp"

namespace troupe::guest {

/// The program, and how long the engine waits for it.
struct GuestProgram {
  std::vector<std::string> command;
  std::chrono::duration<double> start{120};    // from its start to its plan
  std::chrono::duration<double> silence{600};  // for one answer
  std::chrono::duration<double> end{600};      // for what it does after its last batch
  std::string fingerprint{};                   // of the program of the run; empty: not known, or any
  std::int64_t samples = 0;                    // of its data set; 0: not known
  std::uint32_t workers = 1;                   // of the run,
  std::uint64_t seed = 1;                      // its seed,
  int threads = 1;                             // and those of its evaluator, for describe()
  std::int64_t epochs = 0;                     // of the run; 0: as many as the program says
};

enum class Role : std::uint8_t { worker, evaluator };

struct GuestPlace {
  Role role = Role::worker;
  std::uint32_t worker = 0;
  std::uint32_t workers = 1;
  int local_worker = 0;
  int threads = 1;  // that it should compute with: OMP_NUM_THREADS, where the user has not set it
  std::uint64_t seed = 1;
  std::int64_t epochs = 0;                   // of the run; 0: GuestProgram::epochs
  bool zeros_for_missing_gradients = false;  // nn::CompileOptions
};

/// The vectors that both sides see, and where each tensor begins in them, in floats.
struct SharedVectors {
  int parameters = -1;  // files; they are the caller's
  int gradients = -1;
  int statistics = -1;
  std::size_t floats = 0;
  std::size_t statistics_floats = 0;
  std::vector<std::int64_t> offsets;
  std::vector<std::int64_t> statistics_offsets;
  std::vector<nn::Bucket> buckets;
  bool shares_gradients = true;
};

class Guest {
 public:
  using OnLine = GuestProcess::OnLine;
  /// Starts the program, and returns when it has said HELLO. Errc::config: the command cannot be started. Errc::program: the program ended before;
  /// peer_lost: it was killed; io: its connection broke.
  /// timeout: GuestProgram::start is over. Errc::data: it does not speak the protocol.
  [[nodiscard]] static core::Result<std::unique_ptr<Guest>> start(const GuestProgram& program, const GuestPlace& place,
                                                                  OnLine on_line);
  /// end() of a run that did not end in order, if it was not called; kills the program if it stays.
  ~Guest();
  Guest(const Guest&) = delete;
  Guest& operator=(const Guest&) = delete;

  /// Instead of welcome(): the program ends with exit code 78, and says why. The guest is of no use afterwards.
  void refuse(const std::string& why);

  [[nodiscard]] const Introduction& introduction() const noexcept { return introduction_; }
  /// Gives it the vectors, and returns when they hold its initial values and it has said how it is to be trained. An evaluator is told at
  /// once that there are no batches. Errors as start().
  [[nodiscard]] core::Result<TrainingPlan> welcome(const SharedVectors& vectors);

  // From here on every error costs the worker, not the run. Errc::program: the program raised an exception, ended by itself, or broke the
  // protocol, and would again. Errc::io, as of a device that failed: it was killed, or is silent.

  /// One step on the samples of `batch`. `optimize`: it also steps its optimizer, at Batch::lr times its rate.
  [[nodiscard]] core::Result<nn::StepResult> step(const nn::Batch& batch, bool optimize,
                                                  const std::function<void(int)>& on_bucket_ready);
  [[nodiscard]] core::Result<void> optimize(std::uint64_t number, double lr);
  /// The vectors hold its newest values.
  [[nodiscard]] core::Result<void> sync();
  /// The vectors were written to.
  [[nodiscard]] core::Result<void> changed();
  /// The state of the guest's optimizer. It is an error if it has more than `most` bytes.
  [[nodiscard]] core::Result<std::vector<std::byte>> save(std::uint64_t most);
  /// Sets the optimizer to a state from save(), of this guest or another one of the same program.
  [[nodiscard]] core::Result<void> load(std::span<const std::byte> state);
  /// Of an evaluator: the program's evaluation of the values in the vectors. Nothing: it has no evaluation.
  [[nodiscard]] core::Result<std::optional<nn::StepResult>> evaluate();
  /// There are no more batches. `in_order`, and the program has computed: it goes on to its end, at most for GuestProgram::end. Errc::program: it
  /// failed after its last batch, or goes on; a warning among its lines says the same. Otherwise its END has an exit code, so that it saves no
  /// model that is not the run's, and it has kEndPatience. The guest is of no use afterwards.
  [[nodiscard]] core::Result<void> end(bool in_order);

 private:
  Guest(const GuestProgram& program, const GuestPlace& place, OnLine on_line)
      : program_(program), place_(place), on_line_(std::move(on_line)) {}
  [[nodiscard]] core::Result<void> send(FrameType type, std::span<const std::byte> payload = {},
                                        std::span<const int> descriptors = {});
  /// The next frame, of one of these types.
  [[nodiscard]] core::Result<Frame> expect(std::span<const FrameType> types, Frames::Deadline deadline);
  [[nodiscard]] core::Result<Frame> expect(FrameType type, Frames::Deadline deadline);
  [[nodiscard]] Frames::Deadline answer_by() const;
  /// `frame`, if it is of one of these types.
  [[nodiscard]] core::Result<Frame> checked(core::Result<Frame> frame, std::span<const FrameType> types);
  /// Errc::data, explained.
  [[nodiscard]] tl::unexpected<core::Error> wrong(std::string message);
  /// Adds what is known of the process to an error of its connection, which is of no use afterwards.
  [[nodiscard]] core::Error explained(core::Error error, const std::string& traceback = {});
  void say_end(int code, const std::string& why);
  /// How the process has ended, at most program_.end after its last batch; says so where that takes long.
  [[nodiscard]] std::optional<std::string> ending_after_work();

  const GuestProgram program_;
  const GuestPlace place_;
  const OnLine on_line_;
  std::unique_ptr<GuestProcess> process_;
  std::optional<Frames> frames_;
  Introduction introduction_;
  Frames::Deadline started_by_{};
  std::vector<std::byte> step_;  // the payload of the latest STEP: its memory is used again
  std::uint32_t buckets_ = 0;    // that each step reports
  std::int64_t samples_ = 1;     // of the program's data set
  bool stepped_ = false;         // a worker that was given a step
  bool waits_ = false;           // an evaluator that has reached its evaluation
  bool left_ = false;            // its program has ended by itself, or was told to end
  bool has_plan_ = false;        // said PLAN
  bool broken_ = false;          // an error was found: the process is killed at the end
};

}  // namespace troupe::guest
