// Weights from files of other programs: names and shapes that differ, 16-bit floats, counters of PyTorch, damaged files.
#include "nn/checkpoint/weights.hpp"

#include <sys/stat.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <limits>
#include <numeric>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include "core/half.hpp"
#include "core/random.hpp"
#include "nn/checkpoint/checkpoint.hpp"
#include "nn/checkpoint/tensors.hpp"
#include "tests/folder.hpp"

namespace troupe::nn {
namespace {

/// 2·1·3·3 + (2 + 2) + 3·8 + 3 parameters, and 2 + 2 running statistics.
Graph norm_net(std::int64_t classes = 3) {
  auto graph = Graph::sequential("norm", {1, 4, 4},
                                 {Conv2dLayer{2, 3, 1, 0, {}, 1, false}, BatchNormLayer{}, LinearLayer{classes, {}}},
                                 Loss::softmax_cross_entropy);
  return std::move(graph.value());
}
constexpr std::size_t kParameters = 18 + 4 + 27;

/// A file as other programs write it: no metadata, no checksums.
struct ForeignFile {
  struct Entry {
    std::string name, dtype;
    std::vector<std::int64_t> shape;
    std::string data;
  };
  std::vector<Entry> entries;

  ForeignFile& add(const std::string& name, std::vector<std::int64_t> shape, const std::vector<float>& values,
                   const std::string& dtype = "F32") {
    std::string data;
    for (const float value : values) {
      if (dtype == "F32") {
        data.append(reinterpret_cast<const char*>(&value), sizeof(value));
      } else {
        const auto half = core::to_half(value, dtype == "F16" ? core::HalfKind::fp16 : core::HalfKind::bf16);
        data.append(reinterpret_cast<const char*>(&half), sizeof(half));
      }
    }
    entries.push_back({name, dtype, std::move(shape), std::move(data)});
    return *this;
  }
  [[nodiscard]] std::string text() const {
    std::string header = "{", data;
    for (const auto& entry : entries) {
      header += fmt::format("{}\"{}\":{{\"dtype\":\"{}\",\"shape\":{},\"data_offsets\":[{},{}]}}",
                            header.size() > 1 ? "," : "", entry.name, entry.dtype, entry.shape, data.size(),
                            data.size() + entry.data.size());
      data += entry.data;
    }
    header += "}";
    const std::uint64_t length = header.size();
    return std::string(reinterpret_cast<const char*>(&length), sizeof(length)) + header + data;
  }
};

std::vector<float> counting(std::size_t count, float first) {
  std::vector<float> values(count);
  std::iota(values.begin(), values.end(), first);
  return values;
}

/// As PyTorch saves norm_net(): statistics between parameters, and a counter.
ForeignFile whole_file(const std::string& dtype = "F32") {
  ForeignFile file;
  file.add("fc1.bias", {3}, counting(3, 60), dtype).add("conv1.weight", {2, 1, 3, 3}, counting(18, 1), dtype);
  file.add("bn1.running_mean", {2}, {-1, -2}, dtype).add("bn1.weight", {2}, {20, 21}, dtype);
  file.entries.push_back({"bn1.num_batches_tracked", "I64", {}, std::string(8, '\1')});
  file.add("bn1.bias", {2}, {22, 23}, dtype).add("fc1.weight", {3, 8}, counting(24, 30), dtype);
  return file.add("bn1.running_var", {2}, {3, 4}, dtype);
}

SafetensorsFile opened(const ForeignFile& file) {
  const auto text = file.text();
  const auto bytes = std::as_bytes(std::span(text));
  return std::move(parse_safetensors({bytes.begin(), bytes.end()}, "f", Checksums::if_present).value());
}

struct Read {
  std::vector<float> parameters = std::vector<float>(kParameters, 7);
  std::vector<float> statistics = std::vector<float>(4, 8);
  core::Result<TakenWeights> result;
  Read(const ForeignFile& file, Fit fit)
      : result(weights_from(opened(file), norm_net(), parameters, statistics, fit)) {}
  [[nodiscard]] std::string error() const { return result ? "taken" : result.error().message; }
};

TEST(Weights, EveryTensorComesToItsPlaceInEveryDtype) {
  for (const char* dtype : {"F32", "F16", "BF16"}) {
    const Read read(whole_file(dtype), Fit::whole);
    ASSERT_TRUE(read.result) << read.error();
    EXPECT_EQ(read.result->taken, 7U);
    auto expected = counting(18, 1);
    for (const float value : {20.F, 21.F, 22.F, 23.F}) expected.push_back(value);
    for (const float value : counting(24, 30)) expected.push_back(value);
    for (const float value : counting(3, 60)) expected.push_back(value);
    EXPECT_EQ(read.parameters, expected) << dtype;
    EXPECT_EQ(read.statistics, (std::vector<float>{-1, -2, 3, 4})) << dtype;
  }
}

TEST(Weights, DifferencesAreNamedWithBothShapes) {
  auto file = whole_file();
  file.entries.erase(file.entries.begin());  // fc1.bias
  EXPECT_EQ(Read(file, Fit::whole).error(), "f: tensor \"fc1.bias\": it is missing, the model needs [3]");
  file = whole_file();
  file.add("head.weight", {1, 2}, {0, 0});
  EXPECT_EQ(Read(file, Fit::whole).error(), "f: tensor \"head.weight\": the model has none of this name ([1, 2])");
  file = whole_file();
  file.entries.back().shape = {2, 1};
  EXPECT_EQ(Read(file, Fit::whole).error(), "f: tensor \"bn1.running_var\": its shape is [2, 1], the model needs [2]");
  file = whole_file();
  file.entries[3] = {"bn1.weight", "I32", {2}, std::string(8, '\0')};
  EXPECT_EQ(Read(file, Fit::whole).error(), "f: tensor \"bn1.weight\": it is I32, and weights are F32, F16 or BF16");
  EXPECT_EQ(
      Read(ForeignFile{}, Fit::whole).error(),
      "f: tensor \"conv1.weight\": it is missing, the model needs [2, 1, 3, 3]; tensor \"bn1.weight\": it is missing, "
      "the model needs [2]; tensor \"bn1.bias\": it is missing, the model needs [2]; tensor \"fc1.weight\": it is "
      "missing, the model needs [3, 8]; and 3 more");
}

TEST(Weights, CountersOfOtherLayersAreNamed) {
  auto file = whole_file();
  file.entries.push_back({"bn2.num_batches_tracked", "I64", {}, std::string(8, '\0')});
  EXPECT_EQ(Read(file, Fit::whole).error(),
            "f: tensor \"bn2.num_batches_tracked\": the model has none of this name ([])");
}

TEST(Weights, PartialTakesWhatFitsAndKeepsTheRest) {
  auto file = whole_file();
  file.entries.erase(file.entries.begin());  // fc1.bias
  file.entries[5] = {"fc1.weight", "F32", {5, 8}, std::string(160, '\0')};
  file.add("head.weight", {1}, {0});
  const Read read(file, Fit::partial);
  ASSERT_TRUE(read.result) << read.error();
  EXPECT_EQ(read.result->taken, 5U);
  EXPECT_EQ(read.result->kept,
            (std::vector<std::string>{"tensor \"fc1.weight\": its shape is [5, 8], the model needs [3, 8]",
                                      "tensor \"fc1.bias\": it is missing, the model needs [3]"}));
  EXPECT_EQ(read.result->left_over,
            (std::vector<std::string>{"tensor \"head.weight\": the model has none of this name ([1])"}));
  EXPECT_EQ(read.parameters[17], 18);
  EXPECT_EQ(read.parameters[21], 23);
  EXPECT_EQ(read.parameters[22], 7);  // as before
  EXPECT_EQ(read.parameters.back(), 7);
  EXPECT_NE(Read(ForeignFile().add("x", {1}, {0}), Fit::partial).error(), "taken");  // nothing fits
}

TEST(Weights, ValuesThatAreNotFiniteAreRefused) {
  for (const float bad : {std::numeric_limits<float>::infinity(), std::nanf("")}) {
    auto file = whole_file();
    std::memcpy(file.entries[6].data.data() + 8, &bad, sizeof(bad));
    const Read read(file, Fit::partial);
    EXPECT_EQ(read.error(), "f: tensor \"fc1.weight\": it has a value that is not finite");
    EXPECT_EQ(read.result.error().code, core::Errc::data);
  }
}

TEST(Weights, NegativeVariancesAreRefused) {
  auto file = whole_file();
  file.entries.back().data = std::string("\0\0\x80\x3f\0\0\x80\xbf", 8);  // 1, -1
  const Read read(file, Fit::whole);
  EXPECT_EQ(read.error(), "f: tensor \"bn1.running_var\": it has a variance below 0");
  EXPECT_EQ(read.result.error().code, core::Errc::data);
}

TEST(Weights, OnlyTensorsOfTheModelAreRead) {
  const tests::Folder folder;
  auto foreign = whole_file();
  foreign.add("head.weight", {1}, {9});
  const auto file = read_weights(folder.write("w.safetensors", foreign.text()), norm_net(5));
  ASSERT_TRUE(file) << file.error().message;
  for (const auto& tensor : file->file.tensors()) {
    const bool fits =
        tensor.name.starts_with("conv1.") || (tensor.name.starts_with("bn1.") && tensor.dtype == DType::f32);
    EXPECT_EQ(tensor.data.empty(), !fits) << tensor.name;  // five classes here, three in the file
  }
  std::vector<float> parameters(18 + 4 + 45), statistics(4);
  const auto taken = weights_from(file->file, norm_net(5), parameters, statistics, Fit::partial);
  ASSERT_TRUE(taken) << taken.error().message;
  EXPECT_EQ(parameters[17], 18);
  EXPECT_EQ(statistics, (std::vector<float>{-1, -2, 3, 4}));
  EXPECT_EQ(taken->kept.size(), 2U);
  std::vector<float> others(kParameters);
  EXPECT_THROW((void)weights_from(file->file, norm_net(), others, statistics, Fit::partial), std::invalid_argument);
}

// A terabyte that is on no disk: reading it would take more memory than there is.
TEST(Weights, AHugeFileCostsNoMoreThanItsHeader) {
  constexpr std::uint64_t kHuge = std::uint64_t{1} << 40;
  const tests::Folder folder;
  const auto write = [&](const std::string& header, std::uint64_t bytes) {
    const std::uint64_t length = header.size();
    const auto path =
        folder.write("huge.safetensors", std::string(reinterpret_cast<const char*>(&length), sizeof(length)) + header);
    std::error_code error;
    std::filesystem::resize_file(path, 8 + header.size() + bytes, error);
    return error ? std::string() : path;
  };
  const auto header = [](std::uint64_t bytes) {
    return fmt::format(R"({{"conv1.weight":{{"dtype":"F32","shape":[{}],"data_offsets":[0,{}]}}}})", bytes / 4, bytes);
  };
  const auto path = write(header(kHuge), kHuge);
  if (path.empty()) GTEST_SKIP() << "the temporary folder has no files of a terabyte";
  const auto graph = norm_net();
  const auto file = read_weights(path, graph);
  ASSERT_TRUE(file) << file.error().message;
  std::vector<float> parameters(kParameters), statistics(4);
  const auto taken = weights_from(file->file, graph, parameters, statistics, Fit::partial);
  ASSERT_FALSE(taken);
  EXPECT_NE(taken.error().message.find("its shape is [274877906944], the model needs [2, 1, 3, 3]"), std::string::npos)
      << taken.error().message;
  const auto shorter = read_weights(write(header(kHuge), kHuge / 2), graph);
  ASSERT_FALSE(shorter);
  EXPECT_NE(shorter.error().message.find("its data is [0, 1099511627776) of 549755813888 bytes"), std::string::npos)
      << shorter.error().message;
}

TEST(Weights, WhatIsNoFileIsRefusedAtOnce) {
  const tests::Folder folder;
  const auto pipe = folder.file("pipe");
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  for (const auto& path : {pipe, folder.path(), folder.file("none")}) {
    const auto file = read_weights(path, norm_net());
    ASSERT_FALSE(file) << path;
    EXPECT_EQ(file.error().code, core::Errc::io);
    EXPECT_NE(file.error().message.find(path), std::string::npos) << file.error().message;
  }
}

TEST(Weights, EveryTruncationIsRefused) {
  const tests::Folder folder;
  const auto whole = whole_file().text();
  ASSERT_TRUE(read_weights(folder.write("w.safetensors", whole), norm_net()));
  for (std::size_t length = 0; length < whole.size(); ++length) {
    const auto cut = read_weights(folder.write("w.safetensors", whole.substr(0, length)), norm_net());
    ASSERT_FALSE(cut) << length;
    EXPECT_EQ(cut.error().code, core::Errc::corrupt) << cut.error().message;
  }
}

TEST(Weights, ADamagedCheckpointIsNoFileOfAnotherProgram) {
  const tests::Folder folder;
  const std::vector<float> values = counting(kParameters, 0), statistics{0, 0, 1, 1};
  const auto graph = norm_net();
  auto tensors = canonical_tensors(graph, values);
  for (auto& tensor : statistics_tensors(graph, statistics)) tensors.push_back(std::move(tensor));
  ASSERT_TRUE(write_checkpoint(system_files(), folder.path(), "c.safetensors", 12, tensors, {}));
  const auto read = read_weights(folder.file("c.safetensors"), graph);
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->step, 12);
  const auto intact = folder.read("c.safetensors");
  for (std::size_t byte = 0; byte < intact.size(); ++byte) {
    auto text = intact;
    text[byte] = static_cast<char>(text[byte] ^ 1);
    EXPECT_FALSE(read_weights(folder.write("d.safetensors", text), norm_net(5))) << byte;
  }
}

TEST(Weights, OverlappingAndAbsurdOffsetsAreOneClearError) {
  const auto refused = [](const std::string& shape, const std::string& offsets, const std::string& other) {
    const auto header = fmt::format(
        "{{\"a\":{{\"dtype\":\"F32\",\"shape\":{},\"data_offsets\":{}}},\"b\":{{\"dtype\":"
        "\"F32\",\"shape\":[1],\"data_offsets\":{}}}}}",
        shape, offsets, other);
    const std::uint64_t length = header.size();
    const auto text =
        std::string(reinterpret_cast<const char*>(&length), sizeof(length)) + header + std::string(12, '\0');
    const auto bytes = std::as_bytes(std::span(text));
    const auto file = parse_safetensors({bytes.begin(), bytes.end()}, "f", Checksums::if_present);
    return file ? "accepted" : file.error().message;
  };
  EXPECT_EQ(refused("[2]", "[0,8]", "[8,12]"), "accepted");
  EXPECT_EQ(refused("[2]", "[0,8]", "[4,8]"), "f: tensor \"b\": its data starts at 4, the one before it ends at 8");
  EXPECT_EQ(refused("[2]", "[8,0]", "[8,12]"), "f: tensor \"a\": its data starts at 8, the one before it ends at 0");
  EXPECT_EQ(refused("[2]", "[0,9223372036854775807]", "[8,12]"),
            "f: tensor \"a\": its data is [0, 9223372036854775807) of 12 bytes in the file");
  EXPECT_NE(refused("[2]", "[0,18446744073709551615]", "[8,12]").find("a number above 2^63"), std::string::npos);
  EXPECT_EQ(refused("[4611686018427387904,4]", "[0,8]", "[8,12]"),
            "f: tensor \"a\": its data has 8 bytes, which is not F32 [4611686018427387904, 4]");
}

// Random damage to a header without checksums: every file is refused, or its tensors lie within the data one behind the other.
TEST(Weights, DamagedFilesAreRefusedOrConsistent) {
  const auto intact = whole_file().text();
  std::uint64_t header = 0;
  std::memcpy(&header, intact.data(), sizeof(header));
  core::Random random(1, core::Purpose::initialise, 0);
  const std::string_view pieces = "0123456789[]{},:\"-.eEF I\\u";
  int accepted = 0;
  for (int trial = 0; trial < 20'000; ++trial) {
    auto text = intact;
    for (int change = 0; change <= trial % 3; ++change) {
      const auto at = static_cast<std::size_t>(random.below(8 + header));
      text[at] = pieces[static_cast<std::size_t>(random.below(pieces.size()))];
    }
    if (trial % 5 == 0) text.resize(static_cast<std::size_t>(random.below(text.size())));
    const auto bytes = std::as_bytes(std::span(text));
    const auto file = parse_safetensors({bytes.begin(), bytes.end()}, "f", Checksums::if_present);
    if (!file) {
      EXPECT_EQ(file.error().code, core::Errc::corrupt);
      EXPECT_TRUE(file.error().message.starts_with("f: ")) << file.error().message;
      continue;
    }
    ++accepted;  // a letter of a name, or a dtype of the same size
    std::size_t total = 0;
    for (const auto& tensor : file->tensors()) {
      std::size_t size = byte_size(tensor.dtype);
      for (const auto extent : tensor.shape) size *= static_cast<std::size_t>(extent);
      EXPECT_EQ(tensor.data.size(), size);
      total += size;
    }
    EXPECT_EQ(total, intact.size() - 8 - header);
  }
  EXPECT_GT(accepted, 0);
  EXPECT_LT(accepted, 20'000);
}

}  // namespace
}  // namespace troupe::nn
