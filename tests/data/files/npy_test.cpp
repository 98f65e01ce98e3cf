#include "data/files/npy.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/data/files/made_npy.hpp"
#include "tests/data/idx_files.hpp"

namespace troupe::data {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

using Wide = std::vector<std::int64_t>;

template <class T>
std::string npy_error(const core::Result<T>& result) {
  if (result) return "no error";
  EXPECT_EQ(result.error().code, core::Errc::data) << result.error().message;
  return result.error().message;
}

TEST(NpyTest, TheFirstBytesAreNumPys) {
  // numpy 1.24: numpy.save(file, [0, 1, …, 6]) begins so.
  const auto bytes = made_npy("<i8", "(7,)", Wide(7));
  const std::string start = std::string("\x93NUMPY\x01\x00v\x00", 10) +  // v: 118 bytes of header
                            "{'descr': '<i8', 'fortran_order': False, 'shape': (7,), }     ";
  EXPECT_EQ(std::string(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(start.size())), start);
  EXPECT_EQ(bytes.size(), 128 + 7 * 8);
}

TEST(NpyTest, IntegersOfEachWidthAndVersionAreRead) {
  const TemporaryDirectory folder;
  const auto file = folder.path() / "labels.npy";
  write_file(file, made_npy("<i8", "(3,)", Wide{5, -1, 1LL << 40}));
  EXPECT_THAT(read_npy_integers(file).value(), ElementsAre(5, -1, 1LL << 40));
  for (const int version : {2, 3}) {
    write_file(file, made_npy("<i4", "(2,)", std::vector<std::int32_t>{7, -8}, version));
    EXPECT_THAT(read_npy_integers(file).value(), ElementsAre(7, -8)) << version;
  }
  write_file(file, made_npy("<i8", "(0,)", Wide{}));
  EXPECT_TRUE(read_npy_integers(file).value().empty());
  Wide many(300'000);  // longer than what is read at once
  for (std::size_t i = 0; i < many.size(); ++i) many[i] = static_cast<std::int64_t>(i * i);
  write_file(file, made_npy("<i8", "(300000,)", many));
  EXPECT_EQ(read_npy_integers(file).value(), many);
}

TEST(NpyTest, NumbersKeepTheirShape) {
  const TemporaryDirectory folder;
  const auto file = folder.path() / "mean.npy";
  write_file(file, made_npy("<f8", "(1, 2, 2)", std::vector<double>{0.5, 1, 2, 3}));
  const auto wide = read_npy_numbers(file).value();
  EXPECT_THAT(wide.shape, ElementsAre(1, 2, 2));
  EXPECT_THAT(wide.values, ElementsAre(0.5, 1, 2, 3));
  write_file(file, made_npy("<f4", "(2,)", std::vector<float>{0.25F, -1}));
  EXPECT_THAT(read_npy_numbers(file).value().values, ElementsAre(0.25, -1));
}

TEST(NpyTest, WhatIsWrongIsNamed) {
  const TemporaryDirectory folder;
  const auto file = folder.path() / "labels.npy";
  const auto integers = [&](const Bytes& bytes) {
    write_file(file, bytes);
    return npy_error(read_npy_integers(file));
  };
  const auto good = made_npy("<i8", "(3,)", Wide{1, 2, 3});
  EXPECT_THAT(integers({}), HasSubstr("labels.npy: truncated"));
  EXPECT_THAT(integers(Bytes(200, 'x')), HasSubstr("labels.npy: not a file of numpy.save"));
  EXPECT_THAT(integers(Bytes(good.begin(), good.end() - 1)), HasSubstr("do not fit the shape that the header says"));
  EXPECT_THAT(integers(made_npy("<i8", "(2,)", Wide{1, 2, 3})), HasSubstr("do not fit the shape"));
  EXPECT_THAT(integers(made_npy("<i8", "(4611686018427387904,)", Wide{1})), HasSubstr("do not fit the shape"));
  EXPECT_THAT(integers(made_npy("<i8", "(3, 1)", Wide{1, 2, 3})), HasSubstr("2 dimensions of '<i8': labels have one"));
  EXPECT_THAT(integers(made_npy(">i8", "(3,)", Wide{1, 2, 3})), HasSubstr("1 dimensions of '>i8'"));
  EXPECT_THAT(integers(made_npy("|O", "(1,)", Wide{1})), HasSubstr("'|O'"));
  for (const auto* header :
       {"", "{", "{'descr': '<i8'}", "{'descr': [('a', '<i8')], 'fortran_order': False, 'shape': (3,), }",
        "{'descr': '<i8', 'fortran_order': 0, 'shape': (3,), }",
        "{'descr': '<i8', 'fortran_order': False, 'shape': (-3,), }",
        "{'descr': '<i8', 'fortran_order': False, 'shape': (3 3), }", "{'descr': '<i8', 'more': 'x', 'shape': (3,), }",
        "{'descr': '<i8', 'fortran_order': False, 'shape': (99999999999999999999,), }"})
    EXPECT_THAT(integers(made_npy_of(header, nullptr, 0)), HasSubstr("a header that cannot be read")) << header;
  auto long_header = made_npy("<i8", "(3,)", Wide{1, 2, 3}, 2);
  long_header[11] = 0x7f;
  EXPECT_THAT(integers(long_header), HasSubstr("a header of 2130"));
  write_file(file, good);
  EXPECT_THAT(npy_error(read_npy_numbers(file)), HasSubstr("'<i8': expected rows of float32 or float64"));
  const double values[2] = {1, 2};
  write_file(file, made_npy_of("{'descr': '<f8', 'fortran_order': True, 'shape': (2, 1), }", values, sizeof values));
  EXPECT_THAT(npy_error(read_npy_numbers(file)), HasSubstr("in Fortran's order"));
  EXPECT_THAT(npy_error(read_npy_integers(folder.path() / "none.npy")), HasSubstr("none.npy"));
}

}  // namespace
}  // namespace troupe::data
