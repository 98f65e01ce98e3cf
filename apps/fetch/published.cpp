#include "apps/fetch/published.hpp"

#include <algorithm>
#include <array>

namespace troupe::fetch {
namespace {

// Sizes and checksums of archives and IDX files: TensorFlow Datasets' list of checksums. Of CIFAR-10's members: torchvision for Ruby.
const std::array kDatasets{
    PublishedDataset{.name = "mnist",
                     .addresses = {"https://storage.googleapis.com/cvdf-datasets/mnist",
                                   "https://ossci-datasets.s3.amazonaws.com/mnist"},
                     .files = {{"train-images-idx3-ubyte.gz", 9'912'422,
                                "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609"},
                               {"train-labels-idx1-ubyte.gz", 28'881,
                                "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c"},
                               {"t10k-images-idx3-ubyte.gz", 1'648'877,
                                "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6"},
                               {"t10k-labels-idx1-ubyte.gz", 4'542,
                                "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6"}}},
    PublishedDataset{
        .name = "fashion-mnist",
        .addresses = {"https://raw.githubusercontent.com/zalandoresearch/fashion-mnist/master/data/fashion",
                      "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com"},
        .files = {{"train-images-idx3-ubyte.gz", 26'421'880,
                   "3aede38d61863908ad78613f6a32ed271626dd12800ba2636569512369268a84"},
                  {"train-labels-idx1-ubyte.gz", 29'515,
                   "a04f17134ac03560a47e3764e11b92fc97de4d1bfaf8ba1a3aa29af54cc90845"},
                  {"t10k-images-idx3-ubyte.gz", 4'422'102,
                   "346e55b948d973a97e58d2351dde16a484bd415d4595297633bb08f03db6a073"},
                  {"t10k-labels-idx1-ubyte.gz", 5'148,
                   "67da17c76eaffca5446c3361aaab5c3cd6d1c2608764d35dfb1850b086bf8dd5"}}},
    PublishedDataset{
        .name = "cifar10",
        .addresses = {"https://www.cs.toronto.edu/~kriz"},
        .files = {{"cifar-10-binary.tar.gz", 170'052'171,
                   "c4a38c50a1bc5f3a1c5537f2155ab9d68f9f25eb1ed8d9ddda3db29a59bca1dd"}},
        .members =
            {{"data_batch_1.bin", 30'730'000, "cee916563c9f80d84e3cc88e17fdc0941787f1244f00a67874d45b261883ada5"},
             {"data_batch_2.bin", 30'730'000, "a591ca11fa1708a91ee40f54b3da4784ccd871ecf2137de63f51ada8b3fa57ed"},
             {"data_batch_3.bin", 30'730'000, "bbe8596564c0f86427f876058170b84dac6670ddf06d79402899d93ceea26f67"},
             {"data_batch_4.bin", 30'730'000, "014e562d6e23c72197cc727519169a60359f5eccd8945ad5a09d710285ff4e48"},
             {"data_batch_5.bin", 30'730'000, "755304fc0b379caeae8c14f0dac912fbc7d6cd469eb67a1029a08a39453a9add"},
             {"test_batch.bin", 30'730'000, "8e2eb146ae340b09e24670f29cabc6326dba54da8789dab6768acf480273f65b"}},
        .folder = "cifar-10-batches-bin"},
};

}  // namespace

std::span<const PublishedDataset> published_datasets() { return kDatasets; }

const PublishedDataset* find_published(std::string_view name) {
  const auto* const found = std::ranges::find(kDatasets, name, &PublishedDataset::name);
  return found == kDatasets.end() ? nullptr : found;
}

}  // namespace troupe::fetch
