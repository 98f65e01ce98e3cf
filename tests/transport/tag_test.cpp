#include "transport/tag.hpp"

#include <stdexcept>

#include <gtest/gtest.h>

namespace troupe::transport {
namespace {

TEST(Tag, LayoutIsTheDocumentedOne) {
  const TagFields fields{.run = 0x12, .exchange = 0x345678, .kind = TagKind::gather, .shard = 0xabc, .chunk = 0xdef0};
  EXPECT_EQ(make_tag(fields), Tag{0x12345678'4'abc'def0ull});
  EXPECT_EQ(fields_of(make_tag(fields)), fields);
}

TEST(Tag, ExchangesWrapAndShardsMustFit) {
  EXPECT_EQ(make_tag({.exchange = (1u << 24) + 5}), make_tag({.exchange = 5}));
  EXPECT_EQ(fields_of(make_tag({.run = 255, .shard = kMaxShard, .chunk = 65535})),
            (TagFields{.run = 255, .shard = kMaxShard, .chunk = 65535}));
  EXPECT_THROW((void)make_tag({.shard = kMaxShard + 1}), std::out_of_range);
}

TEST(Tag, ReadsAsText) {
  EXPECT_EQ(to_string(make_tag({.run = 1, .exchange = 7, .kind = TagKind::push, .shard = 2, .chunk = 3})),
            "push of exchange 7, shard 2, chunk 3 (run 1)");
  EXPECT_EQ(to_string(Tag{0xf000'0000}), "unknown kind of exchange 0, shard 0, chunk 0 (run 0)");
}

}  // namespace
}  // namespace troupe::transport
