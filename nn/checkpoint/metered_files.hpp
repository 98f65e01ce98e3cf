/// A FileSystem that shows whether its disk makes progress, so that a slow disk differs from one that hangs. It forwards every
/// call, splits long writes into pieces, and counts completed calls. As thread-safe as the one underneath; any thread may read the
/// count.
#pragma once

#include <atomic>
#include <cstdint>

#include "nn/checkpoint/file_system.hpp"

namespace troupe::nn {

class MeteredFiles final : public FileSystem {
 public:
  /// `files` must outlive this object.
  explicit MeteredFiles(FileSystem& files) : files_(files) {}

  /// Grows with every completed call, and with every piece written or copied.
  [[nodiscard]] const std::atomic<std::uint64_t>& calls() const noexcept { return calls_; }

  static constexpr std::size_t kPieceBytes = std::size_t{4} << 20;

  [[nodiscard]] core::Result<int> create(const std::string& path) override;
  [[nodiscard]] core::Result<void> write(int file, Bytes bytes, const std::string& path) override;
  [[nodiscard]] core::Result<void> sync(int file, const std::string& path) override;
  [[nodiscard]] core::Result<void> close(int file, const std::string& path) override;
  [[nodiscard]] core::Result<void> copy(const std::string& from, const std::string& to,
                                        const std::function<void()>& moved) override;
  [[nodiscard]] core::Result<void> rename(const std::string& from, const std::string& to) override;
  [[nodiscard]] core::Result<void> sync_directory(const std::string& path) override;
  [[nodiscard]] core::Result<void> remove(const std::string& path) override;
  [[nodiscard]] core::Result<void> create_directories(const std::string& path) override;
  [[nodiscard]] core::Result<std::vector<std::string>> list(const std::string& path) override;
  [[nodiscard]] core::Result<std::vector<std::byte>> read(const std::string& path) override;

 private:
  template <class T>
  [[nodiscard]] T ended(T result) {
    ++calls_;
    return result;
  }

  FileSystem& files_;
  std::atomic<std::uint64_t> calls_ = 0;
};

}  // namespace troupe::nn
