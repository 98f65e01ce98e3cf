#include <algorithm>
#include <memory>
#include <optional>

#include <fmt/format.h>

#include "apps/arguments/checkpoint.hpp"
#include "apps/arguments/checks.hpp"
#include "apps/backends.hpp"
#include "apps/command.hpp"
#include "apps/output.hpp"
#include "apps/program.hpp"
#include "apps/reports/prediction_report.hpp"
#include "data/picture_sources.hpp"
#include "experiment/batches/batch_memory.hpp"
#include "experiment/evaluation.hpp"
#include "experiment/state/initial_model.hpp"
#include "nn/arenas/host_view.hpp"
#include "nn/layout.hpp"

namespace troupe::apps {
namespace {

struct PredictArguments {
  CheckpointArguments checkpoint;
  std::vector<std::string> files;
  std::int64_t top = 5;
  bool json = false;
};

/// A model that waits for pictures.
struct Predictor {
  experiment::RunSpec spec;
  core::HostAllocator memory;
  std::unique_ptr<nn::Backend> backend;
  std::unique_ptr<nn::Replica> replica;
};

core::Result<void> load(const PredictArguments& arguments, Predictor& predictor) {
  const auto settings = settings_of(arguments.checkpoint);
  if (!settings) return tl::unexpected(settings.error());
  if (auto own = check_no_program(*settings, "`troupe predict`"); !own) return tl::unexpected(std::move(own.error()));
  auto spec = experiment::build_run_spec(*settings, true);  // with the data: it has the mean to subtract
  if (!spec) return tl::unexpected(spec.error());
  predictor.spec = std::move(*spec);
  const auto& graph = *predictor.spec.graph;
  const auto model = experiment::load_model(arguments.checkpoint.path, graph);
  if (!model) return tl::unexpected(model.error());
  auto backend = make_backend(*settings);
  if (!backend) return tl::unexpected(backend.error());
  predictor.backend = std::move(*backend);
  auto options = experiment::evaluation_options(predictor.spec, settings->threads(0), predictor.memory);
  options.batch = std::min(options.batch, static_cast<std::int64_t>(arguments.files.size()));
  auto replica =
      experiment::compile_evaluation(*predictor.backend, graph, std::move(options), *predictor.spec.source.test);
  if (!replica) return tl::unexpected(replica.error());
  predictor.replica = std::move(*replica);
  predictor.replica->import_canonical(model->parameters);
  nn::write_canonical(predictor.replica->kernels(), nn::statistics_layout(graph), model->statistics,
                      predictor.replica->statistics());
  return {};
}

/// As PIL converts colours to grey (ITU-R BT.601). `colours` [3, plane] → `grey` [plane].
void to_grey(std::span<const std::uint8_t> colours, std::span<std::uint8_t> grey) {
  const auto plane = grey.size();
  for (std::size_t i = 0; i < plane; ++i)
    grey[i] = static_cast<std::uint8_t>(
        (19595U * colours[i] + 38470U * colours[plane + i] + 7471U * colours[2 * plane + i] + 0x8000U) >> 16);
}

/// One of `pictures` as the model's data has images: bytes [source_shape()].
core::Result<void> read_source(const data::Dataset& pictures, std::int64_t index, std::span<std::uint8_t> source) {
  if (source.size() == static_cast<std::size_t>(pictures.shape().size()))
    return pictures.read(index, source).map([](auto) {});
  std::vector<std::uint8_t> colours(static_cast<std::size_t>(pictures.shape().size()));
  if (const auto read = pictures.read(index, colours); !read) return tl::unexpected(read.error());
  to_grey(colours, source);
  return {};
}

/// The memory of a batch of pictures: bytes where the replica prepares images itself, else floats. As in evaluations of a run.
struct Pictures {
  explicit Pictures(const Predictor& predictor)
      : preprocess(predictor.spec.source.test->preprocess()),
        labels(static_cast<std::size_t>(predictor.replica->batch())) {
    const auto source = static_cast<std::size_t>(preprocess.source_shape().size());
    if (predictor.replica->bytes()) {
      bytes.resize(labels.size() * source);
      cuts.assign(labels.size(), experiment::cut_of(preprocess.center_view()));
    } else {
      one.resize(source);
      images.resize(labels.size() * static_cast<std::size_t>(preprocess.output_shape().size()));
    }
  }

  [[nodiscard]] core::Result<void> read(const data::Dataset& pictures, std::int64_t index, std::size_t row) {
    const auto source = static_cast<std::size_t>(preprocess.source_shape().size());
    if (!bytes.empty()) return read_source(pictures, index, std::span(bytes).subspan(row * source, source));
    if (auto got = read_source(pictures, index, one); !got) return got;
    const auto size = static_cast<std::size_t>(preprocess.output_shape().size());
    preprocess.apply(one, preprocess.center_view(), std::span(images).subspan(row * size, size));
    return {};
  }
  [[nodiscard]] nn::Batch batch(std::size_t rows) const {
    return {.images = images,
            .labels = labels,
            .lease = 0,
            .count = static_cast<std::int64_t>(rows),
            .bytes = bytes,
            .cuts = cuts};
  }

  const data::Preprocess& preprocess;
  std::vector<std::int32_t> labels;  // not known; only the outputs are read
  std::vector<float> images;
  std::vector<std::uint8_t> bytes;
  std::vector<nn::Cut> cuts;
  std::vector<std::uint8_t> one;  // picture
};

/// The predictions for pictures [first, first + count), at most a batch.
core::Result<std::vector<Prediction>> predict_batch(Predictor& predictor, Pictures& memory,
                                                    const data::Dataset& pictures, std::int64_t first,
                                                    std::int64_t count, const PredictArguments& arguments) {
  std::vector<Prediction> predictions;
  std::vector<std::size_t> read_ones;  // indices in predictions, by their row in the batch
  for (std::int64_t i = first; i < first + count; ++i) {
    auto& prediction = predictions.emplace_back(Prediction{arguments.files[static_cast<std::size_t>(i)], {}, {}});
    if (const auto read = memory.read(pictures, i, read_ones.size()); !read)
      prediction.error = read.error();
    else
      read_ones.push_back(predictions.size() - 1);
  }
  if (read_ones.empty()) return predictions;
  const auto result = predictor.replica->evaluate(memory.batch(read_ones.size()));
  if (!result) return tl::unexpected(result.error());
  const auto& graph = *predictor.spec.graph;
  const auto width = static_cast<std::size_t>(graph.output().size());
  for (std::size_t row = 0; row < read_ones.size(); ++row)
    predictions[read_ones[row]].classes = top_classes(predictor.replica->outputs().subspan(row * width, width),
                                                      static_cast<std::size_t>(arguments.top), graph.loss());
  return predictions;
}

core::Result<void> run_predict(const PredictArguments& arguments) {
  Predictor predictor;
  if (auto loaded = load(arguments, predictor); !loaded) return loaded;
  const auto& test = *predictor.spec.source.test;
  const auto shape = test.preprocess().source_shape();
  if (shape.channels != 1 && shape.channels != 3)
    return core::fail(core::Errc::config,
                      fmt::format("a picture has one or three channels, and the images of {} have {}",
                                  predictor.spec.settings->data.name, shape.channels));
  const auto pictures = data::open_named_pictures(predictor.spec.settings->data, shape, arguments.files);
  if (!pictures) return tl::unexpected(pictures.error());
  const auto names = test.dataset().class_names();
  const auto batch = predictor.replica->batch();
  Pictures memory(predictor);
  std::optional<core::Error> failure;  // the latest bad file
  for (std::int64_t first = 0; first < (*pictures)->size(); first += batch) {
    const auto count = std::min(batch, (*pictures)->size() - first);
    const auto predictions = predict_batch(predictor, memory, **pictures, first, count, arguments);
    if (!predictions) return tl::unexpected(predictions.error());
    if (auto printed =
            print(arguments.json ? prediction_json(*predictions, names) : prediction_text(*predictions, names));
        !printed)
      return printed;
    for (const auto& prediction : *predictions) {
      if (!prediction.error) continue;
      if (failure) tell(fmt::format("troupe: {}\n", failure->message));
      failure = prediction.error;
    }
  }
  if (failure) return tl::unexpected(std::move(*failure));
  return {};
}

Action declare_predict(CLI::App& app) {
  const auto arguments = std::make_shared<PredictArguments>();
  add_checkpoint(app, arguments->checkpoint);
  app.add_option("IMAGE", arguments->files,
                 "pictures: JPEG or PNG; a bad one is named, and the others are still predicted (exit code 65, or 74)")
      ->required();
  app.add_option("--top", arguments->top, "classes that are shown of each picture")
      ->type_name("N")
      ->check(whole_at_least(1))
      ->capture_default_str();
  app.add_flag("--json", arguments->json, "one line of JSON per picture");
  return [arguments] { return run_predict(*arguments); };
}

}  // namespace

Command predict() {
  return {.name = "predict",
          .summary = "say what pictures show: the classes with the greatest probability",
          .examples =
              "  troupe predict runs/20260102-030405-cifar10-easgd dog.jpg cat.png\n"
              "  troupe predict best.safetensors pictures/*.jpg --top 1 --json\n"
              "  troupe predict best.safetensors dog.jpg --set data.path=elsewhere/cifar10\n",
          .declare = declare_predict};
}

}  // namespace troupe::apps
