/// A test of downloads: one file of known contents, and where it is to arrive.
#pragma once

#include <chrono>
#include <filesystem>
#include <fstream>
#include <stop_token>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "apps/fetch/download.hpp"
#include "tests/apps/fetch/file_bytes.hpp"
#include "tests/folder.hpp"

namespace troupe::fetch {

inline constexpr std::size_t kBytes = 700'001;  // more than two pieces

class Downloads : public ::testing::Test {
 protected:
  Downloads() {
    options_.http.variable = [](const char*) -> const char* { return nullptr; };
    options_.pause = std::chrono::milliseconds(1);
  }

  core::Result<void> get(const std::vector<std::string>& addresses, const std::stop_token& stop = {}) {
    std::vector<Url> urls;
    for (const auto& address : addresses) urls.push_back(parse_url(address + "/f").value());
    return download(
        file_, urls, folder_.path(), options_, [this](std::uint64_t bytes) { seen_.push_back(bytes); }, stop);
  }
  /// The error's code; fails the test where there is none.
  core::Error failure(const std::vector<std::string>& addresses) {
    const auto got = get(addresses);
    EXPECT_FALSE(got);
    return got ? core::Error{} : got.error();
  }
  void expect_complete() const {
    EXPECT_TRUE(testing::read_file(path()) == contents_);
    EXPECT_FALSE(std::filesystem::exists(part()));
  }
  [[nodiscard]] std::filesystem::path path() const { return folder_.file("f"); }
  [[nodiscard]] std::filesystem::path part() const { return folder_.file("f.part"); }
  void write_part(const std::string& bytes) const { std::ofstream(part(), std::ios::binary) << bytes; }

  const std::string contents_ = testing::some_bytes(kBytes);
  const PublishedFile file_{"f", kBytes, testing::sha256(contents_)};
  tests::Folder folder_;
  DownloadOptions options_;
  std::vector<std::uint64_t> seen_;
};

}  // namespace troupe::fetch
