/// The files of a split as theano_alexnet's preprocessing names them. Thread rule: pure but for reading folders.
#pragma once

#include <filesystem>
#include <string_view>
#include <vector>

#include "core/error.hpp"

namespace troupe::data {

struct HickleSplit {
  std::vector<std::filesystem::path> files;  // in the order of the labels
  std::filesystem::path labels;              // empty: there is none
};

/// Files: DIRECTORY/WORD*/*.hkl, of the first folder by name that has any (train_hkl, train_hkl_b256_b_256), or DIRECTORY/WORD*.hkl, for the
/// first of split_words(). Labels: WORD_labels.npy in DIRECTORY or its folder "labels". The order is that of names, by the number with which
/// they begin; but where all names end in "_" and two or three binary digits, as parts of a batch that was cut in four or eight, those digits
/// count from the left (0000_00, 0000_10, 0000_01, 0000_11). Errc::data: no file, naming `dataset`.
[[nodiscard]] core::Result<HickleSplit> hickle_split(std::string_view dataset, const std::filesystem::path& directory,
                                                     bool train);

}  // namespace troupe::data
