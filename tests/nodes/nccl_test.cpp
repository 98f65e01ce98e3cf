// Sums by NCCL over processes, with the tests' stand-in for the library and the host's for devices.
#include <dlfcn.h>

#include <cstdlib>

#include "tests/nodes/nodes_fixture.hpp"

namespace troupe::nodes {
namespace {

/// Programs started meanwhile find the stand-in; `failing` names the call of it that fails.
class WithNccl {
 public:
  explicit WithNccl(const char* failing = "") {
    if (const char* const before = std::getenv("LD_LIBRARY_PATH")) before_ = before;
    ::setenv("LD_LIBRARY_PATH", (TROUPE_FAKES_FOLDER ":" + before_.value_or("")).c_str(), 1);
    if (*failing != 0) ::setenv("TROUPE_FAKE_NCCL", failing, 1);
  }
  ~WithNccl() {
    before_ ? ::setenv("LD_LIBRARY_PATH", before_->c_str(), 1) : ::unsetenv("LD_LIBRARY_PATH");
    ::unsetenv("TROUPE_FAKE_NCCL");
  }
  WithNccl(const WithNccl&) = delete;
  WithNccl& operator=(const WithNccl&) = delete;

 private:
  std::optional<std::string> before_;
};

const std::vector<std::string> kByNccl{"strategy.name=bsp", "exchange.algorithm=nccl", "cluster.device=cuda_on_host",
                                       "cluster.deterministic=false"};

class Nccl : public NodesFixture {
 protected:
  std::vector<std::string> by_nccl(std::vector<std::string> more = {}) {
    more.insert(more.begin(), kByNccl.begin(), kByNccl.end());
    return train(with(more));
  }
};

// 3 ranks: the stand-in adds them from the last to the first, asa from the first to the last.
TEST_F(Nccl, SumsLikeMessagesButForTheOrder) {
  const WithNccl nccl;
  start_nodes(2);
  Process over(by_nccl());
  ASSERT_EQ(over.wait(), 0) << over.err();
  const auto sums = summary(over);
  Process messages(train(with({"strategy.name=bsp", "exchange.algorithm=asa", "cluster.device=cuda_on_host"})));
  ASSERT_EQ(messages.wait(), 0) << messages.err();
  const auto expected = summary(messages);
  EXPECT_NEAR(sums["test"]["loss"].get<double>(), expected["test"]["loss"].get<double>(), 1e-3);
  EXPECT_NE(sums["center_hash"], expected["center_hash"]) << "NCCL has summed nothing";
  Process replay(program({"replay", sums["run"]}));
  EXPECT_EQ(replay.wait(), 78);
  EXPECT_NE(replay.err().find("its numbers differ each time"), std::string::npos) << replay.err();
}

TEST_F(Nccl, IsRefusedInOneLineWhereItCannotSum) {
  start_nodes(2);
  if (void* const real = ::dlopen("libnccl.so.2", RTLD_LAZY)) {  // else it is missing
    ::dlclose(real);
  } else {
    Process missing(by_nccl());
    EXPECT_EQ(missing.wait(), 78) << missing.err();
    EXPECT_NE(missing.err().find("NCCL cannot be loaded"), std::string::npos) << missing.err();
  }
  const std::vector<std::pair<const char*, const char*>> settings{
      {"cluster.deterministic=true", "an order of its own"},
      {"cluster.device=cpu", "sums in the memory of GPUs"},
      {"exchange.wire=bf16", "in float32"},
      {"strategy.name=pairs", "the groups of pairs are smaller"},
  };
  const WithNccl nccl;
  start_nodes(1);
  for (const auto& [setting, why] : settings) {
    Process refused(by_nccl({setting}));
    EXPECT_EQ(refused.wait(), 78) << setting << ": " << refused.err();
    EXPECT_NE(refused.err().find(why), std::string::npos) << refused.err();
  }
}

TEST_F(Nccl, FailedCallsEndTheRunWithTheirName) {
  for (const char* call : {"ncclGetUniqueId", "ncclCommInitRank", "ncclAllReduce"}) {
    const WithNccl nccl(call);
    nodes_.clear();
    start_nodes(2);
    Process run(by_nccl());
    EXPECT_EQ(run.wait(), 74) << call << ": " << run.err();
    EXPECT_NE(run.err().find(std::string("NCCL: ") + call), std::string::npos) << run.err();
  }
}

// The others wait in a sum for the killed node: its loss aborts it.
TEST_F(Nccl, AKilledNodeEndsTheRunAndResumeContinuesIt) {
  const WithNccl nccl;
  start_nodes(2);
  Process run(by_nccl({"run.epochs=100000", "cluster.synthetic_step_ms=20"}));
  ASSERT_TRUE(run.says("epoch 2/")) << run.err();
  node(1).process().kill();
  EXPECT_EQ(run.wait(), 75) << run.err();
  EXPECT_NE(run.err().find("is lost"), std::string::npos) << run.err();
  start_node();
  const auto epochs = two_epochs_after(run);
  Process again(resume_to(epochs));
  EXPECT_EQ(again.wait(), 0) << again.err();
  EXPECT_EQ(summary(again)["samples"], epochs * 1200) << again.err();
}

}  // namespace
}  // namespace troupe::nodes
