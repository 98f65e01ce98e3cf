#include "nn/checkpoint/safetensors.hpp"

#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstring>
#include <filesystem>

#include <gtest/gtest.h>

namespace troupe::nn {
namespace {

std::vector<std::byte> bytes_of_text(std::string_view text) {
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

/// A file by the specification: length, header, data.
std::vector<std::byte> file_of(std::string_view header, std::string_view data) {
  const std::uint64_t length = header.size();
  std::string text(reinterpret_cast<const char*>(&length), 8);
  return bytes_of_text(text.append(header).append(data));
}

std::vector<std::byte> joined(const EncodedSafetensors& encoded) {
  std::vector<std::byte> bytes;
  for (const auto part : encoded.parts()) bytes.insert(bytes.end(), part.begin(), part.end());
  return bytes;
}

/// Three dtypes, a scalar, an empty tensor, and text that needs escaping.
struct Sample {
  std::array<float, 6> weight{1, -2, 3.5f, 0, 5, 6};
  std::array<std::int64_t, 1> count{-7};
  std::array<std::uint8_t, 3> flags{1, 2, 255};
  Metadata metadata{{"leases", "{\"next\": [1, 2]}"}, {"note", "a \"b\"\n\\ ünïcode"}};
  [[nodiscard]] std::vector<TensorView> tensors() const {
    return {{"conv1.weight", DType::f32, {3, 1, 2}, std::as_bytes(std::span(weight))},
            {"flags", DType::u8, {3}, std::as_bytes(std::span(flags))},
            {"count", DType::i64, {}, std::as_bytes(std::span(count))},
            {"nothing", DType::f32, {0, 4}, {}}};
  }
  [[nodiscard]] std::vector<std::byte> bytes() const { return joined(encode_safetensors(tensors(), metadata).value()); }
};

std::string error_of(std::vector<std::byte> bytes, Checksums checksums = Checksums::if_present) {
  const auto file = parse_safetensors(std::move(bytes), "f", checksums);
  if (file) return "accepted";
  EXPECT_EQ(file.error().code, core::Errc::corrupt);
  return file.error().message;
}

TEST(Safetensors, RoundTrip) {
  const Sample sample;
  const auto file = parse_safetensors(sample.bytes(), "f", Checksums::required);
  ASSERT_TRUE(file) << file.error().message;
  EXPECT_EQ(file->metadata(), sample.metadata);
  std::vector<std::string> names;
  for (const auto& tensor : file->tensors()) names.push_back(tensor.name);
  EXPECT_EQ(names, (std::vector<std::string>{"count", "conv1.weight", "nothing", "flags"}));  // falling element size
  const auto* weight = file->find("conv1.weight");
  ASSERT_NE(weight, nullptr);
  EXPECT_EQ(weight->shape, (std::vector<std::int64_t>{3, 1, 2}));
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(weight->data.data()) % 8, 0u);
  std::array<float, 6> values{};
  EXPECT_TRUE(file->copy_floats("conv1.weight", {3, 1, 2}, values));
  EXPECT_EQ(values, sample.weight);
  EXPECT_EQ(file->find("count")->dtype, DType::i64);
  EXPECT_EQ(std::memcmp(file->find("count")->data.data(), sample.count.data(), 8), 0);
  EXPECT_TRUE(file->find("nothing")->data.empty());
  EXPECT_EQ(file->find("flags")->data.size(), 3u);
}

TEST(Safetensors, BytesFollowTheSpecification) {
  const auto bytes = Sample().bytes();
  std::uint64_t length = 0;
  std::memcpy(&length, bytes.data(), 8);
  EXPECT_EQ(length % 8, 0u);
  const std::string header(reinterpret_cast<const char*>(bytes.data()) + 8, length);
  EXPECT_EQ(header.front(), '{');
  EXPECT_EQ(header[header.find_last_not_of(' ')], '}');
  EXPECT_EQ(bytes.size(), 8 + length + 8 + 24 + 3);
  EXPECT_NE(header.find(R"("count":{"dtype":"I64","shape":[],"data_offsets":[0,8]})"), std::string::npos);
  EXPECT_NE(header.find(R"("conv1.weight":{"dtype":"F32","shape":[3,1,2],"data_offsets":[8,32]})"), std::string::npos);
  EXPECT_NE(header.find(R"("nothing":{"dtype":"F32","shape":[0,4],"data_offsets":[32,32]})"), std::string::npos);
  EXPECT_NE(header.find(R"("flags":{"dtype":"U8","shape":[3],"data_offsets":[32,35]})"), std::string::npos);
  EXPECT_NE(header.find(R"("xxh3:nothing":"99aa06d3014798d86001c324468d497f")"),
            std::string::npos);  // XXH3-128 of empty input
}

TEST(Safetensors, FilesOfOtherWritersAreRead) {
  // The form of the specification's own example; spaces and order are free.
  const auto bytes = file_of(
      R"( { "b" : {"data_offsets":[4,8], "shape":[1], "dtype":"F32"}, "a":{"dtype":"I16","shape":[2,1],"data_offsets":[0,4]} }  )",
      std::string_view("\x01\x00\x02\x00\x00\x00\x80\x3f", 8));
  const auto file = parse_safetensors(bytes, "f", Checksums::if_present);
  ASSERT_TRUE(file) << file.error().message;
  float one = 0;
  EXPECT_TRUE(file->copy_floats("b", {1}, std::span(&one, 1)));
  EXPECT_EQ(one, 1);
  EXPECT_EQ(error_of(bytes, Checksums::required), "f: the header has no checksum: not written by troupe, or damaged");
  EXPECT_EQ(error_of(file_of("{}", "")), "accepted");
  EXPECT_EQ(error_of(file_of(R"({"__metadata__":{"format":"pt"}})", "")), "accepted");
}

TEST(Safetensors, EverySingleFlippedBitIsDetected) {
  const auto intact = Sample().bytes();
  ASSERT_EQ(error_of(intact, Checksums::required), "accepted");
  for (std::size_t bit = 0; bit < intact.size() * 8; ++bit) {
    auto bytes = intact;
    bytes[bit / 8] ^= std::byte{1} << (bit % 8);
    EXPECT_NE(error_of(std::move(bytes), Checksums::required), "accepted") << "byte " << bit / 8 << " bit " << bit % 8;
  }
}

TEST(Safetensors, EveryTruncationAndAnyExtensionIsDetected) {
  const auto intact = Sample().bytes();
  for (std::size_t length = 0; length < intact.size(); ++length)
    EXPECT_NE(error_of({intact.begin(), intact.begin() + static_cast<std::ptrdiff_t>(length)}, Checksums::if_present),
              "accepted")
        << length;
  auto longer = intact;
  longer.push_back(std::byte{0});
  EXPECT_EQ(error_of(longer), "f: the header describes 35 bytes of data, the file holds 36");
}

TEST(Safetensors, ChecksumErrorsNameTheTensor) {
  auto bytes = Sample().bytes();
  bytes[bytes.size() - 4] ^= std::byte{0x80};  // the last byte of conv1.weight
  EXPECT_EQ(error_of(bytes), "f: tensor \"conv1.weight\": its checksum differs");
  bytes = Sample().bytes();
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  bytes[text.find("leases")] ^= std::byte{1};
  EXPECT_EQ(error_of(bytes), "f: the header's checksum differs");
}

TEST(Safetensors, HostileHeadersAreRefused) {
  const auto refused = [](std::string_view header, std::string_view data = {}) {
    return error_of(file_of(header, data));
  };
  EXPECT_EQ(error_of(bytes_of_text("1234567")), "f: 7 bytes are too few for a safetensors file: it was cut off");
  EXPECT_EQ(error_of(bytes_of_text(std::string_view("\xff\xff\xff\xff\xff\xff\xff\xff{}", 10))),
            "f: a header of 18446744073709551615 bytes is above the limit of 16777216: is it a safetensors file?");
  EXPECT_EQ(error_of(bytes_of_text(std::string_view("\x03\0\0\0\0\0\0\0{}", 10))),
            "f: the header should have 3 bytes, 2 are there: it was cut off");
  EXPECT_EQ(refused("{\"a\":"), "f: header: not valid JSON near byte 6");
  EXPECT_EQ(refused("{} x"), "f: header: not valid JSON near byte 4");
  EXPECT_EQ(refused(""), "f: header: not valid JSON near byte 1");
  EXPECT_EQ(refused("[]"), "f: header: a list where the format has none");
  EXPECT_EQ(refused("7"), "f: header: a number where the format has none");
  EXPECT_EQ(refused("null"), "f: header: a null where the format has none");
  EXPECT_EQ(refused(R"({"a":true})"), "f: header: a boolean where the format has none");
  EXPECT_EQ(refused(R"({"a":"b"})"), "f: header: a string where the format has none");
  EXPECT_EQ(refused(R"({"__metadata__":{"a":{}}})"), "f: header: a nested object where the format has none");
  EXPECT_EQ(refused(R"({"__metadata__":{"a":"b","a":"c"}})"), "f: header: metadata key \"a\" twice");
  EXPECT_EQ(refused(R"({"__metadata__":{},"__metadata__":{}})"), "f: header: name \"__metadata__\" twice");
  EXPECT_EQ(refused(R"({"a":{"dtype":"F32","extra":1}})"), "f: header: unknown key \"extra\" in tensor \"a\"");
  EXPECT_EQ(refused(R"({"a":{"dtype":"F32","dtype":"F32"}})"), "f: header: key \"dtype\" twice in tensor \"a\"");
  EXPECT_EQ(refused(R"({"a":{"dtype":"F32","shape":[]}})"),
            "f: header: tensor \"a\" without one of dtype, shape and data_offsets");
  EXPECT_EQ(refused(R"({"a":{"dtype":["F32"]}})"), "f: header: a list where the format has none");
  EXPECT_EQ(refused(R"({"a":{"shape":[[1]]}})"), "f: header: a list where the format has none");
  EXPECT_EQ(refused(R"({"a":{"shape":"[1]"}})"), "f: header: a string where the format has none");
  EXPECT_EQ(refused(R"({"a":{"shape":[-1]}})"), "f: header: a negative number where the format has none");
  EXPECT_EQ(refused(R"({"a":{"shape":[1.5]}})"),
            "f: header: a number that is not an integer where the format has none");
  EXPECT_EQ(refused(R"({"a":{"shape":[9223372036854775808]}})"),
            "f: header: a number above 2^63 where the format has none");
  std::string many = R"({"a":{"shape":[1)";
  for (int i = 0; i < 64; ++i) many += ",1";
  EXPECT_EQ(refused(many + "]}}"), "f: header: a list of more than 64 numbers where the format has none");
  EXPECT_EQ(refused(std::string(100000, '[')), "f: header: a list where the format has none");
}

TEST(Safetensors, TensorsMustCoverTheDataExactly) {
  const auto tensor = [](const char* name, const char* dtype, const char* shape, int from, int to) {
    return "\"" + std::string(name) + "\":{\"dtype\":\"" + dtype + "\",\"shape\":" + shape + ",\"data_offsets\":[" +
           std::to_string(from) + "," + std::to_string(to) + "]}";
  };
  const auto refused = [](const std::string& tensors, std::size_t data) {
    return error_of(file_of("{" + tensors + "}", std::string(data, 'x')));
  };
  EXPECT_EQ(refused(tensor("a", "F32", "[2]", 0, 8), 8), "accepted");
  EXPECT_EQ(refused(tensor("a", "F33", "[2]", 0, 8), 8), "f: tensor \"a\": unknown dtype \"F33\"");
  EXPECT_EQ(refused(tensor("a", "F32", "[3]", 0, 8), 8), "f: tensor \"a\": its data has 8 bytes, which is not F32 [3]");
  EXPECT_EQ(
      refused(tensor("a", "F32", "[4611686018427387904,4]", 0, 0), 0),
      "f: tensor \"a\": its data has 0 bytes, which is not F32 [4611686018427387904, 4]");  // 2^64 · 4 bytes are not 0
  EXPECT_EQ(refused(tensor("a", "F32", "[2]", 0, 8), 4), "f: tensor \"a\": its data is [0, 8) of 4 bytes in the file");
  EXPECT_EQ(refused(tensor("a", "U8", "[2]", 0, 2) + "," + tensor("b", "U8", "[2]", 3, 5), 5),
            "f: tensor \"b\": its data starts at 3, the one before it ends at 2");  // a hole
  EXPECT_EQ(refused(tensor("a", "U8", "[2]", 0, 2) + "," + tensor("b", "U8", "[2]", 1, 3), 3),
            "f: tensor \"b\": its data starts at 1, the one before it ends at 2");  // an overlap
  EXPECT_EQ(refused(tensor("a", "U8", "[0]", 2, 0), 2),
            "f: tensor \"a\": its data starts at 2, the one before it ends at 0");
  EXPECT_EQ(refused(R"("a":{"dtype":"U8","shape":[1],"data_offsets":[0]})", 1),
            "f: header: tensor \"a\": 1 data offsets instead of 2");
  EXPECT_EQ(refused(tensor("a", "U8", "[1]", 0, 1), 3), "f: the header describes 1 bytes of data, the file holds 3");
}

TEST(Safetensors, CopyingFloatsChecksNameTypeAndShape) {
  const auto file = parse_safetensors(Sample().bytes(), "f", Checksums::required);
  ASSERT_TRUE(file);
  std::array<float, 6> out{};
  const auto error = [&](const std::string& name, const std::vector<std::int64_t>& shape) {
    const auto copied = file->copy_floats(name, shape, out);
    EXPECT_FALSE(copied);
    EXPECT_EQ(copied.error().code, core::Errc::config);
    return copied.error().message;
  };
  EXPECT_EQ(error("conv2.weight", {6}),
            "f: tensor \"conv2.weight\": it is missing: is it of the model that the config describes?");
  EXPECT_EQ(error("conv1.weight", {6}),
            "f: tensor \"conv1.weight\": its shape is [3, 1, 2], the model needs [6]: is it of the model that the "
            "config describes?");
  EXPECT_EQ(error("flags", {3}),
            "f: tensor \"flags\": it is U8, the model needs F32: is it of the model that the config describes?");
  EXPECT_EQ(file->text("other").error().message, "f: metadata \"other\" is missing");
}

TEST(Safetensors, UnwritableTensorsAreErrors) {
  const std::array<float, 2> values{};
  const TensorView good{"a", DType::f32, {2}, std::as_bytes(std::span(values))};
  const auto error = [](std::vector<TensorView> tensors, const Metadata& metadata = {}) {
    const auto encoded = encode_safetensors(tensors, metadata);
    return encoded ? "accepted" : encoded.error().message;
  };
  EXPECT_EQ(error({good}), "accepted");
  EXPECT_EQ(error({good, good}), "tensor \"a\": the name is there twice");
  TensorView bad = good;
  bad.name = "__metadata__";
  EXPECT_EQ(error({bad}), "tensor \"__metadata__\": the name is reserved");
  bad = good;
  bad.shape = {3};
  EXPECT_EQ(error({bad}), "tensor \"a\": 8 bytes are not F32 [3]");
  EXPECT_EQ(error({good}, {{"xxh3", ""}}), "metadata key \"xxh3\" is reserved");
  EXPECT_EQ(error({good}, {{"xxh3:a", ""}}), "metadata key \"xxh3:a\" is reserved");
  EXPECT_NE(error({good}, {{"k", "\xff"}}).find("UTF-8"), std::string::npos);
  EXPECT_NE(error({good}, {{"k", std::string(kMaxHeaderBytes, 'x')}})
                .find("bytes is above the limit of 16777216: too much metadata"),
            std::string::npos);
}

/// An independent reader in a few lines of Python's standard library, written from the published format.
constexpr const char* kPythonReader = R"(
import json, struct, sys
raw = open(sys.argv[1], 'rb').read()
n, = struct.unpack('<Q', raw[:8])
assert n <= 100_000_000 and raw[8:9] == b'{'
header = json.loads(raw[8:8 + n].decode('utf-8'))
metadata = header.pop('__metadata__', {})
assert all(isinstance(v, str) for v in metadata.values())
data, end = raw[8 + n:], 0
for name, t in sorted(header.items(), key=lambda item: item[1]['data_offsets']):
    begin, stop = t['data_offsets']
    assert begin == end
    end = stop
    code, size = {'F32': ('f', 4), 'I64': ('q', 8), 'U8': ('B', 1)}[t['dtype']]
    assert begin % size == 0
    print(name, t['shape'], list(struct.unpack('<%d%s' % ((stop - begin) // size, code), data[begin:stop])))
assert end == len(data)
print(metadata['note'] == 'a "b"\n\\ \u00fcn\u00efcode', json.loads(metadata['leases']))
)";

std::string output_of(const std::string& command) {
  std::string text;
  FILE* pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) return text;
  std::array<char, 256> buffer{};
  while (fgets(buffer.data(), buffer.size(), pipe) != nullptr) text += buffer.data();
  pclose(pipe);
  return text;
}

TEST(Safetensors, PythonReaderFindsTheSameTensors) {
  if (output_of("python3 -c 'print(1)' 2>/dev/null") != "1\n") GTEST_SKIP() << "there is no python3";
  const auto directory = std::filesystem::temp_directory_path() / ("troupe-safetensors-" + std::to_string(getpid()));
  std::filesystem::create_directories(directory);
  const Sample sample;
  const auto encoded = encode_safetensors(sample.tensors(), sample.metadata);
  ASSERT_TRUE(replace_file(system_files(), directory, "sample.safetensors", encoded->parts()));
  const std::string_view script(kPythonReader);
  const std::array<Bytes, 1> parts{std::as_bytes(std::span(script))};
  ASSERT_TRUE(replace_file(system_files(), directory, "reader.py", parts));
  const auto text = output_of("python3 '" + (directory / "reader.py").string() + "' '" +
                              (directory / "sample.safetensors").string() + "'");
  std::filesystem::remove_all(directory);
  EXPECT_EQ(text,
            "count [] [-7]\n"
            "conv1.weight [3, 1, 2] [1.0, -2.0, 3.5, 0.0, 5.0, 6.0]\n"
            "nothing [0, 4] []\n"
            "flags [3] [1, 2, 255]\n"
            "True {'next': [1, 2]}\n");
}

}  // namespace
}  // namespace troupe::nn
