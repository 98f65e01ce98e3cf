/// Random JSON, queries and filters: each is answered, or refused as the client's fault, and changes nothing else. TROUPE_FUZZ=N tries N seeds,
/// TROUPE_FUZZ_SEED=S begins with another one.
#include <cstdlib>
#include <random>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "service/api/job_json.hpp"
#include "store/query/filter.hpp"
#include "tests/service/served.hpp"

namespace troupe::service {
namespace {

std::uint64_t number_of(const char* variable, std::uint64_t otherwise) {
  const char* const text = std::getenv(variable);
  return text == nullptr ? otherwise : std::stoull(text);
}

class Fuzz {
 public:
  explicit Fuzz(std::uint64_t seed) : random_(seed) {}

  std::size_t up_to(std::size_t most) { return std::uniform_int_distribution<std::size_t>(0, most)(random_); }
  template <class T>
  const T& one_of(const std::vector<T>& all) {
    return all[up_to(all.size() - 1)];
  }

  std::string text() {
    static const std::vector<std::string> kTexts{"",
                                                 "bsp",
                                                 "easgd",
                                                 "strategy.name",
                                                 "train.lr",
                                                 "run.name",
                                                 "größe τ",
                                                 "..",
                                                 "../../x",
                                                 "a\nb",
                                                 "true",
                                                 "-1",
                                                 "1e999",
                                                 "NaN",
                                                 "h1:4242",
                                                 "[1, 2",
                                                 "\"",
                                                 "# x",
                                                 "[run]\nname = 1",
                                                 "\xF0\x9F\x98\x80",
                                                 "%",
                                                 "glyphs",
                                                 "lenet",
                                                 "mlp",
                                                 "auto",
                                                 "=~<>!",
                                                 "and",
                                                 "\x01\x7f"};
    auto made = one_of(kTexts);
    while (up_to(3) == 0) made += one_of(kTexts);
    if (up_to(40) == 0) made += std::string(up_to(5000), 'x');
    return made;
  }

  Json value(int depth = 0) {
    switch (up_to(depth > 4 ? 6 : 9)) {
      case 0: return nullptr;
      case 1: return up_to(1) == 0;
      case 2: return static_cast<std::int64_t>(random_());
      case 3: return random_();
      case 4: return std::ldexp(static_cast<double>(random_()), static_cast<int>(up_to(2000)) - 1000);
      case 5:
      case 6: return text();
      case 7: {
        auto list = Json::array();
        for (auto count = up_to(4); count > 0; --count) list.push_back(value(depth + 1));
        return list;
      }
      default: return object(depth + 1);
    }
  }

  /// Often with keys that requests have.
  Json object(int depth = 0) {
    static const std::vector<std::string> kKeys{
        "kind",  "name",          "config",   "toml",      "command",         "priority",
        "nodes", "start",         "path",     "token",     "resize",          "tags",
        "note",  "strategy.name", "train.lr", "data.name", "cluster.workers", "model.name",
        "run",   "model",         "strategy", "data",      "strategy.tau",    "model.command"};
    auto made = Json::object();
    for (auto count = up_to(6); count > 0; --count) made[up_to(5) == 0 ? text() : one_of(kKeys)] = value(depth);
    if (depth == 0 && up_to(1) == 0) made["kind"] = one_of<std::string>({"train", "launch", "grid"});
    if (depth == 0 && up_to(2) == 0)
      made["config"] = Json{{"model.name", "lenet"}, {"data.name", "glyphs"}, {one_of(kKeys), value(1)}};
    return made;
  }

  /// Conditions, mostly: pieces of the grammar in any order.
  std::string filter() {
    static const std::vector<std::string> kPieces{"strategy", "accuracy", "lr",    "tau",   "tag", "run",     "started",
                                                  "name",     "no.such",  "=",     "!=",    "<",   "<=",      ">",
                                                  ">=",       "~",        " ",     " and ", "\"",  "\\",      "0.99",
                                                  "-1e3",     "2026",     "easgd", "%",     "'",   "\xC3\xBC"};
    std::string made;
    for (auto count = up_to(9); count > 0; --count) made += up_to(8) == 0 ? text() : one_of(kPieces);
    return made;
  }

 private:
  std::mt19937_64 random_;
};

class FuzzTest : public testing::Test {
 protected:
  static Limits patient() {
    Limits limits;
    limits.requests_per_s = limits.burst = 1e9;
    return limits;
  }
  template <class Try>
  void each_seed(Try attempt) const {
    for (auto seed = first_; seed < first_ + tries_; ++seed) {
      SCOPED_TRACE(fmt::format("TROUPE_FUZZ=1 TROUPE_FUZZ_SEED={}", seed));
      Fuzz fuzz(seed);
      attempt(fuzz);
      if (HasFailure()) return;
    }
  }

  std::uint64_t first_ = number_of("TROUPE_FUZZ_SEED", 1);
  std::uint64_t tries_ = number_of("TROUPE_FUZZ", 200);
};

TEST_F(FuzzTest, AnyJsonIsAnsweredOrRefusedByEveryRouteThatTakesOne) {
  const Served served(patient());
  const std::string run = "/api/v1/runs/" + std::string(kRun);
  const std::vector<std::pair<std::string, std::string>> routes{
      {"POST", "/api/v1/check"}, {"POST", "/api/v1/datasets"}, {"POST", "/api/v1/jobs"},
      {"POST", "/api/v1/nodes"}, {"POST", "/api/v1/session"},  {"PUT", run + "/notes"}};
  const auto config = served.folder().read(std::string(kRun) + "/config.toml");
  each_seed([&](Fuzz& fuzz) {
    const auto& [method, path] = fuzz.one_of(routes);
    const auto body =
        (fuzz.up_to(9) == 0 ? fuzz.value() : fuzz.object()).dump(-1, ' ', false, Json::error_handler_t::replace);
    const auto reply = served.ask(method, path, Role::admin, body);
    const bool fine = (reply.status >= 200 && reply.status < 300) || (reply.status >= 400 && reply.status < 500) ||
                      reply.status == 503;  // no jobs, no nodes
    EXPECT_TRUE(fine) << method << " " << path << " " << body << ": " << reply.status << " " << reply.body;
    EXPECT_TRUE(reply.status == 204 || reply.json().is_structured()) << reply.body;
  });
  EXPECT_EQ(served.get("/api/v1/runs").json()["total"], 1);
  EXPECT_EQ(served.folder().read(std::string(kRun) + "/config.toml"), config);
  EXPECT_EQ(served.get(run).status, 200);
}

TEST_F(FuzzTest, AnyJobRequestIsAJobOrHasItsProblem) {
  each_seed([](Fuzz& fuzz) {
    const auto body = fuzz.object();
    const auto job = job_request(body, "ann");
    if (!job) {
      EXPECT_EQ(job.error().message.find('\n'), std::string::npos) << job.error().message;
      EXPECT_TRUE(job.error().code == core::Errc::usage || job.error().code == core::Errc::config) << body;
      return;
    }
    if (job->problems.empty()) {
      EXPECT_TRUE(check_spec(job->spec).has_value()) << body;
      EXPECT_EQ(job->spec.user, "ann");
    }
  });
}

TEST_F(FuzzTest, AnyQueryOfRunsIsAListOrRefused) {
  const Served served(patient(), [](const tests::Folder& folder) {
    for (int k = 0; k < 5; ++k) store::write_done(folder, fmt::format("20260102-03040{}-r τ", k), 0.1 * k, k);
  });
  each_seed([&](Fuzz& fuzz) {
    std::string query = "filter=" + percent_encoded(fuzz.filter());
    if (fuzz.up_to(2) == 0) query += "&sort=" + percent_encoded(fuzz.filter());
    if (fuzz.up_to(2) == 0) query += "&columns=" + percent_encoded(fuzz.text());
    if (fuzz.up_to(2) == 0) query += "&limit=" + percent_encoded(fuzz.text());
    if (fuzz.up_to(2) == 0) query += fmt::format("&offset={}", fuzz.up_to(7));
    const auto reply = served.get("/api/v1/runs?" + query);
    EXPECT_TRUE(reply.status == 200 || reply.status == 400) << query << ": " << reply.status << " " << reply.body;
    EXPECT_TRUE(reply.json().is_object()) << reply.body;
    EXPECT_TRUE(reply.status != 200 || reply.json()["runs"].size() <= reply.json()["total"].get<std::size_t>())
        << query;
  });
  EXPECT_EQ(served.get("/api/v1/runs").json()["total"], 5);
}

TEST_F(FuzzTest, QuotedFiltersComeBackAsTheyWere) {
  static const std::vector<std::string> kOperators{"=", "!=", "<=", ">=", "<", ">", "~"};
  each_seed([](Fuzz& fuzz) {
    std::vector<std::pair<std::string, std::string>> written;
    std::string filter;
    for (auto count = fuzz.up_to(4); count > 0; --count) {
      const auto key = fmt::format("key{}.x-{}", fuzz.up_to(9), count);
      const auto value = fuzz.text();
      std::string quoted;
      for (const char c : value) quoted += c == '"' || c == '\\' ? std::string("\\") + c : std::string(1, c);
      filter += fmt::format("{}{}{}\"{}\"",
                            filter.empty()       ? ""
                            : fuzz.up_to(1) == 0 ? " and "
                                                 : "  ",
                            key, fuzz.one_of(kOperators), quoted);
      written.emplace_back(key, value);
    }
    const auto parsed = store::parse_filter(filter);
    ASSERT_TRUE(parsed.has_value()) << filter << ": " << parsed.error().message;
    ASSERT_EQ(parsed->size(), written.size()) << filter;
    for (std::size_t i = 0; i < written.size(); ++i) {
      EXPECT_EQ((*parsed)[i].key, written[i].first);
      EXPECT_EQ((*parsed)[i].value, written[i].second);
    }
  });
}

}  // namespace
}  // namespace troupe::service
