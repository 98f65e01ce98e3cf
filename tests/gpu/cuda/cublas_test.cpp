// cuBLASLt without a GPU: descriptors and names. Its heuristics need a handle, which needs a GPU.
#include <gtest/gtest.h>

#include "gpu/cuda/cublas/matrix.hpp"

namespace troupe::gpu {
namespace {

class Cublas : public ::testing::Test {
 protected:
  void SetUp() override {
    auto library = CublasLibrary::open();
    if (!library) GTEST_SKIP() << library.error().message;
    library_ = *library;
  }
  std::shared_ptr<const CublasLibrary> library_;
};

MatrixCall some_call() {
  MatrixProduct product;
  product.m = 64, product.n = 1000, product.k = 2048;
  product.transpose_b = true;
  product.type = Type::bf16;
  product.output = Type::bf16;
  product.bias = true;
  return matrix_call(product);
}

/// cuBLASLt checks the size of every attribute that is set.
TEST_F(Cublas, DescriptorsAreAcceptedAndOnlyTheHandleIsMissing) {
  for (const bool deterministic : {false, true}) {
    const auto found = find_products(*library_, nullptr, some_call(), {Math::fp32, deterministic}, 1 << 20, 4);
    ASSERT_FALSE(found);
    EXPECT_NE(found.error().message.find("cublasLtMatmulAlgoGetHeuristic"), std::string::npos) << found.error().message;
  }
}

TEST_F(Cublas, AlgorithmsAreFoundAgainByNameInTheSameVersionOnly) {
  cublasLtMatmulAlgo_t algorithm{};
  for (std::size_t i = 0; i < std::size(algorithm.data); ++i) algorithm.data[i] = 0x123456789abcdefULL << i;
  const std::string name = algorithm_name(*library_, algorithm);
  const auto again = parse_algorithm(*library_, name);
  ASSERT_TRUE(again) << name;
  EXPECT_TRUE(std::equal(std::begin(algorithm.data), std::end(algorithm.data), std::begin(again->data)));
  const std::string version = std::to_string(library_->get_version());
  std::string other = name;
  other.replace(other.find(version), version.size(), "120000");
  for (const std::string& text : {other, name + " 1", name + "x", name.substr(0, name.rfind(' ')),
                                  std::string("cublaslt"), std::string("host direct"), std::string()})
    EXPECT_FALSE(parse_algorithm(*library_, text)) << text;
}

TEST_F(Cublas, ANameOfAnotherVersionIsRefused) {
  const auto found = find_product(*library_, nullptr, some_call(), {}, 0, "cublaslt 1 2 3");
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().code, core::Errc::config);
}

}  // namespace
}  // namespace troupe::gpu
