// `troupe data fetch` as a program, with a local server.
#include <csignal>

#include <gtest/gtest.h>

#include "apps/fetch/published.hpp"
#include "data/registry.hpp"
#include "tests/apps/fetch/http_server.hpp"
#include "tests/apps/program.hpp"
#include "tests/wait.hpp"

namespace troupe::apps {
namespace {

using fetch::testing::HttpServer;
using fetch::testing::Reply;
using fetch::testing::Request;

TEST(DataFetch, NamesAreThoseThatRunsOpen) {
  for (const auto& dataset : fetch::published_datasets())
    EXPECT_NE(data::find_dataset(dataset.name), nullptr) << dataset.name;
}

TEST(DataFetch, AMissingDataSetNamesTheCommandThatFetchesIt) {
  const TemporaryDirectory folder;
  for (const auto& dataset : fetch::published_datasets()) {
    data::DataConfig config;
    config.name = dataset.name;
    config.path = folder.path();
    const auto opened = data::find_dataset(dataset.name)->open(config, data::Split::train, 0);
    ASSERT_FALSE(opened);
    EXPECT_EQ(opened.error().code, core::Errc::data);
    const auto command = "`troupe data fetch " + dataset.name + " --to " + folder.path() + "`";
    EXPECT_NE(opened.error().message.find(command), std::string::npos) << opened.error().message;
  }
}

TEST(DataFetch, BadArgumentsAreUsageErrors) {
  const auto unknown = troupe({"data", "fetch", "imagenet"});
  EXPECT_EQ(unknown.code, 2);
  EXPECT_EQ(unknown.err, "troupe: imagenet cannot be fetched: mnist, fashion-mnist, cifar10 can\n");
  EXPECT_EQ(troupe({"data", "fetch"}).code, 2);
  const TemporaryDirectory folder;
  const auto address = troupe({"data", "fetch", "mnist", "--from", "mirror", "--to", folder.file("to")});
  EXPECT_EQ(address.code, 2);
  EXPECT_TRUE(is_one_line(address)) << address.err;
  EXPECT_EQ(folder.entries(), 0U);
}

TEST(DataFetch, FileOfAnotherLengthIsADataError) {
  const HttpServer server([](const Request&) { return Reply{.body = "not a data set"}; });
  const TemporaryDirectory folder;
  const auto outcome = troupe({"data", "fetch", "mnist", "--from", server.address(), "--to", folder.path()});
  EXPECT_EQ(outcome.code, 65);
  EXPECT_EQ(outcome.err,
            "troupe: " + server.address() +
                "/train-images-idx3-ubyte.gz is not the published file: it has 14 bytes, expected 9912422\n");
}

TEST(DataFetch, InterruptKeepsWhatArrived) {
  constexpr std::size_t kSent = 300'000;
  const std::string bytes(9'912'422, 'x');  // as many as the file has
  const HttpServer server([&](const Request&) { return Reply{.body = bytes, .cut_after = kSent, .stalls = true}; });
  const TemporaryDirectory folder;
  const auto part = folder.file("train-images-idx3-ubyte.gz.part");
  // The shell says when the program may be sent a signal: its process is the program's.
  const auto outcome = run_until({"/bin/sh", "-c", "echo begun >&2; exec \"$0\" \"$@\"", TROUPE_BINARY, "data", "fetch",
                                  "mnist", "--from", server.address(), "--to", folder.path()},
                                 "begun", [&](pid_t child) {
                                   EXPECT_TRUE(tests::eventually([&] {
                                     std::error_code none;
                                     return std::filesystem::file_size(part, none) == kSent && !none;
                                   }));
                                   ::kill(child, SIGINT);
                                 });
  EXPECT_EQ(outcome.code, 130);
  EXPECT_NE(outcome.err.find("the same command goes on from there"), std::string::npos) << outcome.err;
  EXPECT_EQ(std::filesystem::file_size(part), kSent);
}

}  // namespace
}  // namespace troupe::apps
