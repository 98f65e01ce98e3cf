// One rank of bulk-synchronous steps of an AlexNet-sized model whose exchange begins during the backward pass; each rank is started
// separately. Three kinds of steps alternate; medians count:
//   alone    the backward pass, no exchange
//   after    the backward pass, then one exchange of the whole vector
//   during   another thread exchanges each layer's gradients as soon as the backward pass has left the layer
// Exposed time: a step's time beyond the backward pass alone. Prints a line of JSON; "share" is exposed during / exposed after.
//
// The backward pass is synthetic: it spends on each layer its share of the multiplications, from the last layer to the first, and does
// not change the gradients. `--backward sleep` leaves the processors to the exchange, as an accelerator does; `compute` keeps one busy
// without memory access.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <thread>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "bench/exchanger.hpp"
#include "core/kernels.hpp"

namespace {

using namespace troupe;
using core::Slice;

struct Layer {
  const char* name;
  std::size_t parameters;
  double multiplications;  // millions, of the forward pass per image; the backward pass has twice as many
};
constexpr std::array kLayers{Layer{"conv1", 34'944, 105.4},  Layer{"conv2", 307'456, 224.0},
                             Layer{"conv3", 885'120, 149.5}, Layer{"conv4", 663'936, 112.1},
                             Layer{"conv5", 442'624, 74.8},  Layer{"fc6", 37'752'832, 37.7},
                             Layer{"fc7", 16'781'312, 16.8}, Layer{"fc8", 4'097'000, 4.1}};

/// The vector: layers in order, each aligned, then a few floats with which the ranks agree.
struct Layout {
  std::vector<Slice> layers;
  Slice whole;
  Slice note;
};
Layout layout() {
  Layout made;
  std::size_t offset = 0;
  for (const auto& layer : kLayers) {
    made.layers.push_back({offset, layer.parameters});
    offset += core::align_floats(layer.parameters);
  }
  made.whole = {0, offset};
  made.note = {offset, core::kAlignmentFloats};
  return made;
}

class Steps {
 public:
  Steps(bench::Rank& rank, bool computes)
      : vector_(rank.vector()), options_(rank.options()), exchanger_(rank), computes_(computes) {}

  [[nodiscard]] core::Result<nlohmann::ordered_json> measure(int rounds, double backward_ms, double longer);

 private:
  enum class Exchange { none, after, during };
  [[nodiscard]] core::Result<double> step(Exchange how);  // ms
  void backward(bool hand_over);
  [[nodiscard]] core::Result<double> agree(double value);  // the mean over the ranks
  [[nodiscard]] core::Result<double> exchange_ms();
  [[nodiscard]] core::Result<void> check() const;
  void spin(double loops);

  const core::Span vector_;
  const bench::RankOptions& options_;
  const Layout layout_ = layout();
  const core::SteadyClock clock_{};
  bench::Exchanger exchanger_;
  const bool computes_;
  core::Duration length_{0};  // of a sleeping backward pass
  double loops_ = 0;          // of a computing one
  volatile float spun_ = 0.5F;
};

constexpr double kMillion = 1e6;

/// So many million steps of eight independent chains: limited by the arithmetic units, without memory access.
void Steps::spin(double loops) {
  std::array<float, 8> x{};
  x.fill(static_cast<float>(spun_));
  for (auto left = static_cast<std::int64_t>(loops * kMillion); left > 0; --left)
    for (float& value : x) value = value * 0.999F + 0.0005F;
  spun_ = x[0];
}

double multiplications() {
  double sum = 0;
  for (const auto& layer : kLayers) sum += layer.multiplications;
  return sum;
}

void Steps::backward(bool hand_over) {
  const auto began = std::chrono::steady_clock::now();
  double done = 0;
  for (std::size_t k = kLayers.size(); k-- > 0;) {
    const double share = kLayers[k].multiplications / multiplications();
    done += share;
    if (computes_)
      spin(loops_ * share);
    else
      std::this_thread::sleep_until(began + std::chrono::duration_cast<core::Duration>(length_ * done));
    if (hand_over) exchanger_.begin(layout_.layers[k]);
  }
}

core::Result<double> Steps::agree(double value) {
  std::ranges::fill(vector_.subspan(layout_.note.offset, layout_.note.count), static_cast<float>(value));
  exchanger_.begin(layout_.note);
  if (auto finished = exchanger_.finish(); !finished) return tl::unexpected(finished.error());
  return static_cast<double>(vector_[layout_.note.offset]);
}

core::Result<void> Steps::check() const {
  const float mean = static_cast<float>(options_.ranks + 1) / 2;
  for (const auto& layer : layout_.layers)
    for (const auto at : {layer.offset, layer.offset + layer.count / 2, layer.offset + layer.count - 1})
      if (std::abs(vector_[at] - mean) > 1e-3F * mean)
        return core::fail(core::Errc::internal, fmt::format("the exchange computed {} and not {}", vector_[at], mean));
  return {};
}

core::Result<double> Steps::step(Exchange how) {
  core::host_kernels().fill(vector_, static_cast<float>(options_.rank + 1));
  if (auto all = agree(0); !all) return all;  // all ranks begin together
  const auto began = clock_.now();
  backward(how == Exchange::during);
  if (how == Exchange::after) exchanger_.begin(layout_.whole);
  if (auto finished = exchanger_.finish(); !finished) return tl::unexpected(finished.error());
  const double ms = core::seconds(clock_.now() - began) * 1e3;
  if (how != Exchange::none)
    if (auto right = check(); !right) return tl::unexpected(right.error());
  return ms;
}

double median(std::vector<double> values) {
  std::ranges::nth_element(values, values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2));
  return values[values.size() / 2];
}

/// One exchange without computation.
core::Result<double> Steps::exchange_ms() {
  length_ = core::Duration{0};
  loops_ = 0;
  std::vector<double> times;
  for (int round = 0; round < 6; ++round) {
    const auto ms = step(Exchange::after);
    if (!ms) return ms;
    if (round > 0) times.push_back(*ms);  // the first round is a warm-up
  }
  return agree(median(times));
}

core::Result<nlohmann::ordered_json> Steps::measure(int rounds, double backward_ms, double longer) {
  const auto exchange = exchange_ms();
  if (!exchange) return tl::unexpected(exchange.error());
  if (backward_ms <= 0) backward_ms = longer * *exchange;
  length_ = std::chrono::duration_cast<core::Duration>(std::chrono::duration<double, std::milli>(backward_ms));
  if (computes_) {
    spin(20);
    constexpr double kTrial = 200;
    const auto began = clock_.now();
    spin(kTrial);
    const auto agreed = agree(kTrial * backward_ms / (core::seconds(clock_.now() - began) * 1e3));
    if (!agreed) return tl::unexpected(agreed.error());
    loops_ = *agreed;
  }
  std::vector<double> alone, after, during;
  for (int round = 0; round < rounds; ++round)
    for (const auto& [how, times] :
         {std::pair{Exchange::none, &alone}, {Exchange::after, &after}, {Exchange::during, &during}}) {
      const auto ms = step(how);
      if (!ms) return tl::unexpected(ms.error());
      times->push_back(*ms);
    }
  const double exposed_after = median(after) - median(alone);
  const double exposed_during = median(during) - median(alone);
  return nlohmann::ordered_json{{"rank", options_.rank},
                                {"ranks", options_.ranks},
                                {"endpoint", options_.endpoint},
                                {"algorithm", options_.algorithm},
                                {"backward", computes_ ? "compute" : "sleep"},
                                {"exchange_ms", *exchange},
                                {"backward_ms", median(alone)},
                                {"after_ms", median(after)},
                                {"during_ms", median(during)},
                                {"exposed_after_ms", exposed_after},
                                {"exposed_during_ms", exposed_during},
                                {"share", exposed_during / exposed_after}};
}

int fail(const core::Error& error) {
  std::fprintf(stderr, "bench_overlap: %s\n", error.message.c_str());
  return 1;
}

nlohmann::ordered_json layers_json() {
  auto list = nlohmann::ordered_json::array();
  for (std::size_t k = kLayers.size(); k-- > 0;)
    list.push_back({{"name", kLayers[k].name},
                    {"parameters", kLayers[k].parameters},
                    {"share", kLayers[k].multiplications / multiplications()}});
  return list;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 2 && std::string_view(argv[1]) == "--layers") {  // as the backward pass leaves them, for the peer
    std::printf("%s\n", layers_json().dump().c_str());
    return 0;
  }
  CLI::App app("One rank of steps whose exchange overlaps with the backward pass. (--layers alone prints the layers.)");
  bench::RankOptions options;
  std::string backward = "sleep";
  int rounds = 15;
  double backward_ms = 0;
  double longer = 1.5;
  declare(app, options);
  app.add_option("--backward", backward, "what the backward pass does")
      ->check(CLI::IsMember({"sleep", "compute"}))
      ->capture_default_str();
  app.add_option("--rounds", rounds, "of the three steps")->check(CLI::Range(1, 1'000'000))->capture_default_str();
  app.add_option("--backward-ms", backward_ms, "how long it takes; 0: so many times as long as an exchange");
  app.add_option("--longer", longer, "how many times")->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  options.floats = layout().note.offset + layout().note.count;

  const auto rank = bench::Rank::meet(options);
  if (!rank) return fail(rank.error());
  const auto figures = Steps(**rank, backward == "compute").measure(rounds, backward_ms, longer);
  if (!figures) return fail(figures.error());
  if (const auto all = (*rank)->barrier(); !all) return fail(all.error());  // no rank closes before all have finished
  std::printf("%s\n", figures->dump().c_str());
  return 0;
}
