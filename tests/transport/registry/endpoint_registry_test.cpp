#include "transport/registry/endpoint_registry.hpp"

#include <algorithm>
#include <stdexcept>

#include <gtest/gtest.h>

#include "transport/inproc/endpoint.hpp"

namespace troupe::transport {
namespace {

EndpointOptions options() {
  static const core::SteadyClock clock;
  return {.completions = CompletionQueue::create(clock).value(), .hub = make_inproc_hub()};
}

TEST(EndpointRegistry, MakesByName) {
  const auto endpoint = make_endpoint("inproc", options());
  ASSERT_TRUE(endpoint);
  EXPECT_EQ((*endpoint)->capabilities().name, "inproc");
}

TEST(EndpointRegistry, AnUnknownNameIsAConfigErrorThatNamesTheKnown) {
  const auto endpoint = make_endpoint("infiniband", options());
  ASSERT_FALSE(endpoint);
  EXPECT_EQ(endpoint.error().code, core::Errc::config);
  EXPECT_NE(endpoint.error().message.find("infiniband"), std::string::npos);
  EXPECT_NE(endpoint.error().message.find("inproc"), std::string::npos);
}

TEST(EndpointRegistry, EveryDocumentedNameIsKnown) {
  const EndpointRegistry registry = built_in_endpoints();
  for (const char* name : {"inproc", "shm", "tcp", "ucx", "mpi"}) {
    EXPECT_NE(std::ranges::find(registry.entries(), name, &EndpointRegistry::Entry::name), registry.entries().end())
        << name;
    EXPECT_EQ(endpoint_info(name).name, name);
  }
  EXPECT_EQ(find_endpoint("auto"), nullptr);
  EXPECT_THROW((void)endpoint_info("infiniband"), std::out_of_range);
  EXPECT_THROW((void)registry.absence("infiniband"), std::out_of_range);
}

/// Each endpoint connects to all others of the run: with all of them in one process that is their square.
TEST(EndpointRegistry, OpenFilesGrowWithTheSquareOfTheWorkersOfAProcess) {
  const auto& shm = endpoint_info("shm");
  EXPECT_GT(open_files_needed(shm, 24, 25), 2U * 24 * 24);
  EXPECT_LT(open_files_needed(shm, 24, 25), 3U * 24 * 24);
  EXPECT_LT(open_files_needed(shm, 1, 25), 256U);
  EXPECT_LT(open_files_needed(endpoint_info("tcp"), 24, 25), open_files_needed(shm, 24, 25));
  const auto needed = open_files_needed(shm, 24, 25);
  EXPECT_TRUE(check_open_files(shm, 24, 25, needed));
  const auto few = check_open_files(shm, 24, 25, needed - 1);
  ASSERT_FALSE(few);
  EXPECT_EQ(few.error().code, core::Errc::config);
  EXPECT_NE(few.error().message.find(std::to_string(needed)), std::string::npos) << few.error().message;
}

TEST(EndpointRegistry, AutoHasOneEndpointForEachKindOfRun) {
  for (const auto run : {AutomaticFor::one_host, AutomaticFor::nodes_on_hosts, AutomaticFor::job_on_hosts})
    EXPECT_EQ(std::ranges::count(endpoint_infos(), run, &EndpointInfo::automatic_for), 1);
  // What carries vectors between hosts must reach them, and only a job has what a job's endpoint needs.
  for (const bool in_job : {false, true}) {
    EXPECT_EQ(automatic_endpoint(true, in_job).automatic_for, AutomaticFor::one_host);
    EXPECT_EQ(automatic_endpoint(false, in_job).reach, Reach::hosts);
    EXPECT_EQ(automatic_endpoint(false, in_job).needs_job, in_job);
  }
  EXPECT_NE(automatic_endpoint(true, false).reach, Reach::process);
}

TEST(EndpointRegistry, EveryRowHasAFactoryOrNamesWhatToInstall) {
  const EndpointRegistry registry = built_in_endpoints();
  for (const auto& info : endpoint_infos()) {
    EXPECT_EQ(info.make == nullptr, !info.library.title.empty()) << info.name;
    EXPECT_EQ(info.make == nullptr, !info.library.packages.empty()) << info.name;
    EXPECT_TRUE(!info.make || registry.absence(info.name).empty()) << info.name;
  }
}

TEST(EndpointRegistry, MissingEndpointIsExplainedAndTheOthersAreListed) {
  EndpointRegistry registry;
  registry.add("inproc", make_inproc_endpoint);
  registry.add_absent("ucx", "libucp-dev was not found by CMake");
  const auto endpoint = registry.make("ucx", options());
  ASSERT_FALSE(endpoint);
  EXPECT_EQ(endpoint.error().code, core::Errc::config);
  EXPECT_EQ(endpoint.error().message,
            "endpoint 'ucx' is not in this build (libucp-dev was not found by CMake): use one of inproc");
  registry.add("ucx", make_inproc_endpoint);  // as after a module is loaded
  EXPECT_TRUE(registry.make("ucx", options()));
  EXPECT_EQ(registry.entries().size(), 2u);
}

TEST(EndpointRegistry, MissingOptionsAreBugs) {
  EndpointOptions no_queue = options(), no_hub = options(), no_messages = options(), no_bytes = options();
  no_queue.completions.reset();
  no_hub.hub.reset();
  no_messages.credit.messages = 0;
  no_bytes.credit.bytes = 0;
  for (const EndpointOptions& o : {no_queue, no_hub, no_messages, no_bytes})
    EXPECT_THROW((void)make_endpoint("inproc", o), std::invalid_argument);
}

TEST(EndpointRegistry, HubsDoNotReachEachOther) {
  const auto a = make_endpoint("inproc", options()).value();
  EndpointOptions elsewhere = options();
  elsewhere.hub = make_inproc_hub("elsewhere");
  const auto b = make_endpoint("inproc", elsewhere).value();
  EXPECT_EQ(a->connect(b->address()).error().code, core::Errc::peer_lost);
}

}  // namespace
}  // namespace troupe::transport
