// Device memory that processes of one host map, with processes in place of a run's.
#include "gpu/device/memory/host_sharing.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <functional>

#include <gtest/gtest.h>

#include "core/devices/device_sharing.hpp"
#include "gpu/device/faulty_device.hpp"
#include "gpu/device/host_device.hpp"
#include "gpu/kernels_of.hpp"
#include "gpu/thread_streams.hpp"

namespace troupe::gpu {
namespace {

constexpr std::size_t kSharedFloats = 1000;
constexpr std::size_t kSharedBytes = kSharedFloats * sizeof(float);

/// A device whose memory the host cannot read, with kernels for it, and memory for other processes.
struct Sharer {
  explicit Sharer(HostDeviceOptions options = {})
      : device([&] {
          options.hides_memory = true;
          return options;
        }()) {}
  [[nodiscard]] core::Span own(std::size_t floats = kSharedFloats) {
    return {static_cast<float*>(sharing->memory().allocate(floats * sizeof(float)).value()), floats};
  }
  [[nodiscard]] std::vector<float> read(core::ConstSpan vector) const {
    std::vector<float> host(vector.size());
    kernels->download(host, vector);
    return host;
  }
  [[nodiscard]] core::Errc refusal(const std::string& handle, std::size_t bytes = kSharedBytes) const {
    const auto opened = sharing->open(handle, bytes);
    return opened ? core::Errc::internal : opened.error().code;
  }
  HostDevice device;
  ThreadStreams streams{device};
  std::unique_ptr<core::Kernels> kernels = kernels_of(device, streams);
  std::shared_ptr<core::DeviceSharing> sharing = device.sharing().value();
};

core::Span span_of(const std::shared_ptr<void>& memory, std::size_t floats = kSharedFloats) {
  return {static_cast<float*>(memory.get()), floats};
}

/// A forked process that runs `work`, with a pipe to this one.
class Fork {
 public:
  explicit Fork(const std::function<void(int write_end)>& work) {
    if (::pipe(pipe_) != 0) throw std::runtime_error("pipe");
    process_ = ::fork();
    if (process_ != 0) return;
    work(pipe_[1]);
    ::_exit(0);
  }
  ~Fork() {
    (void)end(SIGKILL);
    ::close(pipe_[0]);
    ::close(pipe_[1]);
  }
  /// The text that the process writes first.
  [[nodiscard]] std::string hear() const {
    char text[512];
    const auto size = ::read(pipe_[0], text, sizeof text);
    return {text, size > 0 ? static_cast<std::size_t>(size) : 0};
  }
  /// Waits for its end; with a signal after sending it.
  int end(int signal = 0) {
    if (process_ <= 0) return 0;
    if (signal != 0) ::kill(process_, signal);
    int status = 0;
    ::waitpid(std::exchange(process_, -1), &status, 0);
    return status;
  }

 private:
  int pipe_[2]{};
  pid_t process_ = -1;
};

/// A process that shares a vector of the number 7 until it is ended.
Fork owner_of_sevens() {
  return Fork([](int out) {
    Sharer owner;
    const auto vector = owner.own();
    owner.kernels->fill(vector, 7);
    const auto handle = owner.sharing->handle_of(vector.data()).value();
    (void)!::write(out, handle.data(), handle.size());
    for (;;) ::pause();
  });
}

TEST(HostSharing, KernelsOfAnotherProcessReadAndWriteTheMemory) {
  Sharer owner;
  const auto vector = owner.own();
  owner.kernels->fill(vector, 2);
  const auto handle = owner.sharing->handle_of(vector.data()).value();
  EXPECT_LE(handle.size(), core::kMostDeviceHandle);
  Fork other([&](int) {
    Sharer here;
    const auto mapped = here.sharing->open(handle, kSharedBytes);
    if (!mapped) ::_exit(1);
    here.kernels->scale(span_of(*mapped), 3);
  });
  EXPECT_EQ(other.end(), 0);
  EXPECT_EQ(owner.read(vector), std::vector<float>(kSharedFloats, 6));
}

TEST(HostSharing, MappedMemoryOutlivesItsOwnersProcess) {
  auto owner = owner_of_sevens();
  const auto handle = owner.hear();
  Sharer here;
  const auto mapped = here.sharing->open(handle, kSharedBytes).value();
  owner.end(SIGKILL);
  EXPECT_EQ(here.read(span_of(mapped)), std::vector<float>(kSharedFloats, 7));
  here.kernels->fill(span_of(mapped), 1);
  EXPECT_EQ(here.read(span_of(mapped))[0], 1);
  EXPECT_EQ(here.refusal(handle), core::Errc::config) << "nobody maps it anew";
}

TEST(HostSharing, ForeignAndFalseHandlesAreRefused) {
  Sharer owner;
  const Sharer other({.shares = "another driver"});
  const auto vector = owner.own();
  const auto handle = owner.sharing->handle_of(vector.data()).value();
  EXPECT_EQ(other.refusal(handle), core::Errc::config);
  EXPECT_EQ(owner.refusal(""), core::Errc::config);
  EXPECT_EQ(owner.refusal("host nonsense"), core::Errc::config);
  EXPECT_EQ(owner.refusal(handle, 100 * kSharedBytes), core::Errc::config) << "longer than the allocation";
  // Standard input is a descriptor of this process, but another file.
  EXPECT_EQ(owner.refusal("host " + std::to_string(::getpid()) + " 0 1 1"), core::Errc::config);
  EXPECT_EQ(owner.sharing->handle_of(nullptr).error().code, core::Errc::io);
  HostDevice none({.shares = ""});
  EXPECT_EQ(none.sharing().error().code, core::Errc::config);
}

TEST(HostSharing, FreedMemoryIsKeptForTheNextAllocationUnderItsHandle) {
  Sharer owner;
  const auto vector = owner.own();
  owner.kernels->fill(vector, 5);
  const auto handle = owner.sharing->handle_of(vector.data()).value();
  const Sharer other;
  const auto mapped = other.sharing->open(handle, kSharedBytes).value();
  owner.sharing->memory().deallocate(vector.data(), kSharedBytes);
  EXPECT_THROW(owner.kernels->fill(vector, 1), core::KernelsFailed) << "it is no allocation now";
  const auto next = owner.own();
  EXPECT_EQ(owner.sharing->handle_of(next.data()), handle);
  EXPECT_EQ(owner.read(next), std::vector<float>(kSharedFloats, 0));
  owner.kernels->fill(next, 9);
  EXPECT_EQ(other.read(span_of(mapped))[kSharedFloats - 1], 9);
}

TEST(HostSharing, AHandleStandsForAllocationsOfDifferentLengthsInTurn) {
  Sharer owner;
  const auto vector = owner.own(10);
  const auto handle = owner.sharing->handle_of(vector.data()).value();
  const Sharer other;
  const auto first = other.sharing->open(handle, 10 * sizeof(float)).value();
  owner.sharing->memory().deallocate(vector.data(), 10 * sizeof(float));
  const auto longer = owner.own();
  EXPECT_EQ(owner.sharing->handle_of(longer.data()), handle);
  owner.kernels->fill(longer, 3);
  EXPECT_THROW(other.kernels->fill(span_of(first), 1), core::KernelsFailed) << "it was mapped shorter";
  const auto again = other.sharing->open(handle, kSharedBytes).value();
  EXPECT_EQ(other.read(span_of(again)), std::vector<float>(kSharedFloats, 3));
}

TEST(HostSharing, AccessesOutsideTheMappedPartAreSeen) {
  Sharer owner;
  const auto vector = owner.own();
  const Sharer other;
  auto mapped = other.sharing->open(owner.sharing->handle_of(vector.data()).value(), kSharedBytes).value();
  const auto part = span_of(mapped);
  EXPECT_THROW(other.kernels->fill({part.data() + 1, kSharedFloats}, 1), core::KernelsFailed);
  mapped.reset();
  EXPECT_THROW(other.kernels->fill(part, 1), core::KernelsFailed) << "it is mapped no more";
}

TEST(HostSharing, IsLimitedAsTheDevicesMemoryIs) {
  Sharer owner({.memory = 2 * kSharedBytes});
  const auto first = owner.own();
  EXPECT_EQ(owner.sharing->memory().allocate(kSharedBytes + 1).error().code, core::Errc::out_of_memory);
  EXPECT_EQ(owner.read(first), std::vector<float>(kSharedFloats, 0));
}

TEST(FaultyDevice, SharedMemoryFailsOnRequest) {
  HostDevice host;
  FaultyDevice device(host);
  for (std::uint64_t number = 1; number <= 4; ++number) {
    device.set(Fault{.kind = CallKind::sharing, .number = number});
    std::vector<bool> worked;
    auto sharing = device.sharing();
    worked.push_back(sharing.has_value());
    if (!sharing) sharing = device.sharing();
    auto memory = (*sharing)->memory().allocate(kSharedBytes);
    worked.push_back(memory.has_value());
    if (!memory) memory = (*sharing)->memory().allocate(kSharedBytes);
    auto handle = (*sharing)->handle_of(*memory);
    worked.push_back(handle.has_value());
    if (!handle) handle = (*sharing)->handle_of(*memory);
    worked.push_back((*sharing)->open(*handle, kSharedBytes).has_value());
    std::vector<bool> expected(4, true);
    expected[number - 1] = false;
    EXPECT_EQ(worked, expected) << number;
  }
}

}  // namespace
}  // namespace troupe::gpu
