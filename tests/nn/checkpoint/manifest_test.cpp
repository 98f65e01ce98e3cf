#include "nn/checkpoint/manifest.hpp"

#include <gtest/gtest.h>

#include "nn/hash.hpp"
#include "tests/nn/checkpoint/memory_files.hpp"

namespace troupe::nn {
namespace {

core::Result<Manifest> read(const std::string& text) {
  MemoryFiles files;
  const int file = files.create("m").value();
  EXPECT_TRUE(files.write(file, std::as_bytes(std::span(text)), "m"));
  return read_manifest(files, "m");
}

TEST(Manifest, RoundTripAndBytes) {
  const Manifest manifest{{30, 20}, {10}};
  const std::string text = encode_manifest(manifest);
  const std::string inner = R"({"format":1,"kept":[30,20],"removed":[10]})";
  EXPECT_EQ(text, "{\"xxh3\":\"" + hash128_hex(std::as_bytes(std::span(inner))) + "\",\"manifest\":" + inner + "}\n");
  const auto back = read(text);
  ASSERT_TRUE(back) << back.error().message;
  EXPECT_EQ(*back, manifest);
}

TEST(Manifest, OtherTextIsCorrupt) {
  const std::string good = encode_manifest({{30, 20}, {10}});
  for (const std::string& bad :
       {std::string(), std::string("{}"), std::string("[]"), std::string("nonsense"), good.substr(0, good.size() - 1),
        good + " ", std::string(R"({"xxh3":"0","manifest":{"format":1,"kept":["a"],"removed":[]}})")}) {
    const auto manifest = read(bad);
    ASSERT_FALSE(manifest) << bad;
    EXPECT_EQ(manifest.error().code, core::Errc::corrupt);
    EXPECT_EQ(manifest.error().message, "m: it was changed or cut off after it was written");
  }
  MemoryFiles files;
  EXPECT_EQ(read_manifest(files, "m").error().code, core::Errc::io);
}

TEST(Manifest, CheckpointNameAndStepRoundTrip) {
  EXPECT_EQ(checkpoint_name(1200), "step-000000001200.safetensors");
  EXPECT_EQ(checkpoint_step("step-000000001200.safetensors"), 1200);
  EXPECT_EQ(checkpoint_step(checkpoint_name(0)), 0);
  EXPECT_EQ(checkpoint_step(checkpoint_name(1234567890123456)), 1234567890123456);
  for (const char* other :
       {"step-1200.safetensors", "step-.safetensors", "step-00000000120x.safetensors", "step--00000001200.safetensors",
        "step-000000001200.safetensors.tmp", "manifest.json", "step-99999999999999999999.safetensors", ""})
    EXPECT_EQ(checkpoint_step(other), -1) << other;
}

}  // namespace
}  // namespace troupe::nn
