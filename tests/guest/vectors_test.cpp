#include "guest/vectors.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <filesystem>

#include <gtest/gtest.h>

namespace troupe::guest {
namespace {

TEST(GuestVectors, BothSidesSeeTheSameMemory) {
  GuestVectors vectors;
  auto buffer = core::Buffer::allocate(vectors, 100, "a test");
  ASSERT_TRUE(buffer);
  const int file = vectors.descriptor_of(buffer->data());
  ASSERT_GE(file, 0);
  void* const there = ::mmap(nullptr, 400, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  ASSERT_NE(there, MAP_FAILED);
  static_cast<float*>(there)[99] = 2.5F;
  EXPECT_EQ(buffer->view()[99], 2.5F);
  EXPECT_EQ(buffer->view()[0], 0.0F);
  ::munmap(there, 400);
}

// Whoever shortened the file would kill the other side at its next read.
TEST(GuestVectors, NeitherSideCanChangeTheSize) {
  GuestVectors vectors;
  const auto buffer = core::Buffer::allocate(vectors, 100, "a test");
  ASSERT_TRUE(buffer);
  const int file = vectors.descriptor_of(buffer->data());
  EXPECT_NE(::ftruncate(file, 0), 0);
  EXPECT_NE(::ftruncate(file, 1 << 20), 0);
  EXPECT_NE(::fcntl(file, F_ADD_SEALS, F_SEAL_WRITE), 0);
}

TEST(GuestVectors, OnlyTheirOwnMemoryHasAFile) {
  GuestVectors vectors;
  float other = 0;
  EXPECT_EQ(vectors.descriptor_of(&other), -1);
  const void* gone = nullptr;
  {
    const auto buffer = core::Buffer::allocate(vectors, 100, "a test");
    gone = buffer->data();
    EXPECT_GE(vectors.descriptor_of(gone), 0);
  }
  EXPECT_EQ(vectors.descriptor_of(gone), -1);
}

TEST(GuestVectors, FreedMemoryLeavesNoDescriptor) {
  const auto open = [] { return std::distance(std::filesystem::directory_iterator("/proc/self/fd"), {}); };
  const auto before = open();
  GuestVectors vectors;
  for (int k = 0; k < 10; ++k) ASSERT_TRUE(core::Buffer::allocate(vectors, 1000, "a test"));
  EXPECT_EQ(open(), before);
}

// The kernel would take pages until it kills a process.
TEST(GuestVectors, MoreThanTheHostHasIsRefused) {
  GuestVectors vectors;
  const auto memory = vectors.allocate(std::size_t{1} << 50);
  ASSERT_FALSE(memory);
  EXPECT_EQ(memory.error().code, core::Errc::out_of_memory);
}

}  // namespace
}  // namespace troupe::guest
