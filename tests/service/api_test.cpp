#include <cstdlib>
#include <fstream>
#include <set>

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "service/assets/embedded.hpp"
#include "tests/service/schema_check.hpp"
#include "tests/service/served.hpp"
#include "tests/wait.hpp"

namespace troupe::service {
namespace {

using nlohmann::json;

/// The answer, held against its schema. `path`: as the document has it.
json good(const Served& served, const std::string& path, const std::string& target) {
  static const auto document = json::parse(embedded_openapi());
  const auto reply = served.get(target);
  EXPECT_EQ(reply.status, 200) << target << ": " << reply.body;
  auto body = reply.json();
  EXPECT_EQ(misfit_of_answer(document, "get", path, reply.status, body), "") << target;
  return body;
}

void expect_error(const Reply& reply, int status) {
  static const auto document = json::parse(embedded_openapi());
  EXPECT_EQ(reply.status, status) << reply.body;
  EXPECT_EQ(misfit(document, {{"$ref", "#/components/schemas/Error"}}, reply.json()), "") << reply.body;
}

const std::string kApi = "/api/v1";
const std::string kRunPath = kApi + "/runs/" + std::string(kRun);

TEST(ApiTest, RunsOfARealStoreThroughAllLayers) {
  const Served served;
  EXPECT_EQ(served.ask("GET", "/healthz", Role::none).body, "ok\n");
  const auto runs = good(served, kApi + "/runs", kApi + "/runs");
  ASSERT_EQ(runs["total"], 1);
  EXPECT_EQ(runs["runs"][0]["run"], kRun);
  EXPECT_EQ(runs["runs"][0]["status"], "done");
  EXPECT_EQ(runs["runs"][0]["accuracy"], 0.9);
  EXPECT_EQ(runs["runs"][0]["tags"], json::array());
}

TEST(ApiTest, EveryAnswerHasItsSchema) {
  const Served served;
  good(served, kApi + "/runs/{run}", kRunPath);
  good(served, kApi + "/runs/{run}/state", kRunPath + "/state");
  good(served, kApi + "/runs/{run}/notes", kRunPath + "/notes");
  good(served, kApi + "/runs/{run}/checkpoints", kRunPath + "/checkpoints");
  good(served, kApi + "/runs/{run}/summary", kRunPath + "/summary");
  good(served, kApi + "/compare", fmt::format("{0}/compare?run={1}&run={1}", kApi, kRun));
  good(served, kApi + "/options", kApi + "/options");
  good(served, kApi + "/options", kApi + "/options?strategy=easgd");
  good(served, kApi + "/strategies", kApi + "/strategies");
  good(served, kApi + "/optimizers", kApi + "/optimizers");
  good(served, kApi + "/openapi.json", kApi + "/openapi.json");
  const auto server = good(served, kApi + "/server", kApi + "/server");
  EXPECT_EQ(server["user"], "read-user");
  const auto models = good(served, kApi + "/models", kApi + "/models");
  for (const auto& model : models["models"]) {
    const auto path = kApi + "/models/" + model["name"].get<std::string>();
    const auto whole = good(served, kApi + "/models/{name}", path);
    EXPECT_EQ(whole["parameters"], model["parameters"]) << path;
    std::int64_t sum = 0;
    for (const auto& layer : whole["layers"]) sum += layer["parameters"].get<std::int64_t>();
    EXPECT_EQ(sum, whole["parameters"]) << path;
  }
}

TEST(ApiTest, RunsThatHaveJustBegunAreFound) {
  const Served served;
  for (int i = 0; i < 20; ++i) {  // each within the time that the list may be behind
    const auto run = fmt::format("20260203-030405-r{}", i);
    good(served, kApi + "/runs", kApi + "/runs");
    store::write_done(served.folder(), run, 0.5);
    good(served, kApi + "/runs/{run}", fmt::format("{}/runs/{}", kApi, run));
  }
  store::write_done(served.folder(), "20260203-030405-last", 0.5);
  good(served, kApi + "/compare", fmt::format("{}/compare?run={}&run=20260203-030405-last", kApi, kRun));
  expect_error(served.get(kApi + "/runs/20260203-030405-none"), 404);
}

TEST(ApiTest, ListIsFilteredSortedAndDivided) {
  const Served served({}, [](const tests::Folder& folder) {
    for (int i = 0; i < 7; ++i) store::write_done(folder, fmt::format("2026010{}-030405-r{}", i + 1, i), 0.1 * i, i);
  });
  const auto page = good(served, kApi + "/runs", kApi + "/runs?sort=accuracy&descending=0&limit=2&offset=3");
  EXPECT_EQ(page["total"], 7);
  ASSERT_EQ(page["runs"].size(), 2U);
  EXPECT_EQ(page["runs"][0]["name"], "r3");
  EXPECT_EQ(page["runs"][1]["name"], "r4");
  EXPECT_EQ(good(served, kApi + "/runs", kApi + "/runs?limit=5&offset=100")["total"], 7);
  const auto some = good(served, kApi + "/runs", kApi + "/runs?filter=accuracy%3E0.45&columns=train.lr");
  EXPECT_EQ(some["total"], 2);
  EXPECT_EQ(some["runs"][0]["train.lr"], 0.05);
  expect_error(served.get(kApi + "/runs?filter=accuracy"), 400);
  expect_error(served.get(kApi + "/runs?sort=nothing"), 400);
  expect_error(served.get(kApi + "/runs?limit=0"), 400);
}

TEST(ApiTest, CurvesHaveEpochSecondsSamplesAndValue) {
  const Served served;
  const auto curves = good(served, kApi + "/runs/{run}/curves", kRunPath + "/curves?series=test.accuracy");
  // started_line: 100 samples per epoch; epoch_line: 2 s per epoch.
  EXPECT_EQ(curves["series"],
            json::parse(R"({"test.accuracy": [[1, 2, 100, 0.5], [2, 4, 200, 0.6], [3, 6, 300, 0.9]]})"));
  expect_error(served.get(kRunPath + "/curves?points=2"), 400);
}

TEST(ApiTest, AnEmptyStoreHasNoRuns) {
  const Served served({}, [](const tests::Folder&) {});
  EXPECT_EQ(good(served, kApi + "/runs", kApi + "/runs"), json::parse(R"({"runs": [], "total": 0})"));
  expect_error(served.get(kRunPath), 404);
  expect_error(served.get(kApi + "/compare?run=a&run=b"), 404);
}

TEST(ApiTest, RunsInGridsAndWithUnicodeNamesAreFound) {
  const std::string grid = "сетка τ", run = "20260102-030405-α=½ 試";
  const Served served({}, [&](const tests::Folder& folder) {
    store::write_done(folder, run, 0.5);
    store::write_done(folder, grid + "/20260102-030405-b", 0.6);
  });
  for (const auto& path : {run, grid + "/20260102-030405-b"}) {
    const auto target = kApi + "/runs/" + percent_encoded(path);
    EXPECT_EQ(good(served, kApi + "/runs/{run}", target)["run"], path);
    good(served, kApi + "/runs/{run}/state", target + "/state");
    EXPECT_EQ(served.get(target + "/config").status, 200);
    EXPECT_EQ(served.get(target + "/export.zip").status, 200);
  }
}

TEST(ApiTest, TenThousandRunsAreListedPageByPage) {
  constexpr int kRuns = 10'000;
  const Served served({}, [](const tests::Folder& folder) {
    const auto config = folder.write("config.toml", "[run]\nseed = 3\n");
    for (int k = 0; k < kRuns; ++k) {
      const auto run = folder.file(fmt::format("20260102-{:06}-r{}", k, k));
      std::filesystem::create_directory(run);
      std::filesystem::create_hard_link(config, run + "/config.toml");  // to write each would take most of the time
    }
  });
  std::set<std::string> seen;
  for (int offset = 0; offset < kRuns; offset += 1000) {
    const auto page = good(served, kApi + "/runs", fmt::format("{}/runs?limit=1000&offset={}&sort=run", kApi, offset));
    EXPECT_EQ(page["total"], kRuns);
    ASSERT_EQ(page["runs"].size(), 1000U);
    EXPECT_EQ(page["runs"][0]["run"], fmt::format("20260102-{0:06}-r{0}", kRuns - 1 - offset));
    for (const auto& row : page["runs"]) seen.insert(row["run"].get<std::string>());
  }
  EXPECT_EQ(seen.size(), static_cast<std::size_t>(kRuns)) << "each once";
  const auto some = good(served, kApi + "/runs", kApi + "/runs?filter=name~r999&limit=7");
  EXPECT_EQ(some["total"], 11) << "r999, and r9990 to r9999";
  EXPECT_EQ(some["runs"].size(), 7U);
}

TEST(ApiTest, ARunThatComesIsListed) {
  const Served served;
  store::write_done(served.folder(), "20260202-030405-new", 0.7);
  const auto listed = [&] { return served.get(kApi + "/runs").json()["total"] == 2; };
  EXPECT_TRUE(tests::eventually(listed));
}

TEST(ApiTest, NotesAreWrittenToTheRunsDirectory) {
  const Served served;
  const auto reply =
      served.ask("PUT", kRunPath + "/notes", Role::run, R"({"tags": ["b", "a", "b"], "note": "figure 4"})");
  ASSERT_EQ(reply.status, 200) << reply.body;
  EXPECT_EQ(reply.json(), json::parse(R"({"tags": ["a", "b"], "note": "figure 4"})"));
  EXPECT_EQ(json::parse(served.folder().read(std::string(kRun) + "/notes.json"))["note"], "figure 4");
  EXPECT_EQ(served.get(kApi + "/runs").json()["runs"][0]["tags"], json::parse(R"(["a", "b"])"));
  for (const auto* body : {"", "{}", "[]", R"({"tags": "a"})", R"({"tags": ["a b"]})", R"({"note": 1})"})
    expect_error(served.ask("PUT", kRunPath + "/notes", Role::run, body), 400);
}

TEST(ApiTest, RemovedRunIsGone) {
  const Served served;
  EXPECT_EQ(served.ask("DELETE", kRunPath).status, 204);
  EXPECT_FALSE(std::filesystem::exists(served.folder().file(kRun)));
  expect_error(served.ask("DELETE", kRunPath), 404);
  EXPECT_EQ(served.get(kApi + "/runs").json()["total"], 0);
}

TEST(ApiTest, LinksToOtherPlacesAreNotFollowed) {
  const tests::Folder outside, elsewhere;
  outside.write("config.toml", "secret = 1\n");
  store::write_done(elsewhere, "grid/20260102-030405-b", 0.6);
  outside.write("metrics.jsonl", store::started_line());
  const Served served({}, [&](const tests::Folder& folder) {
    Served::one_run(folder);
    std::filesystem::create_directory_symlink(outside.path(), folder.file("20260103-030405-link"));
    std::filesystem::create_directory_symlink(elsewhere.file("grid"), folder.file("linked-grid"));
    std::filesystem::remove(folder.file(std::string(kRun) + "/summary.json"));
    std::filesystem::create_symlink(outside.file("config.toml"), folder.file(std::string(kRun) + "/summary.json"));
  });
  EXPECT_EQ(served.get(kRunPath + "/summary").status, 404);
  for (const auto* what : {"/config", "/state", "/export.zip"})
    EXPECT_EQ(served.get(kApi + "/runs/20260103-030405-link" + what).status, 404) << what;
  for (const std::string link : {"20260103-030405-link", "linked-grid%2F20260102-030405-b"}) {
    const auto target = kApi + "/runs/" + link;
    for (const auto* what : {"", "/curves", "/notes", "/checkpoints", "/events"})
      expect_error(served.get(target + what), 404);
    expect_error(served.get(fmt::format("{}/compare?run={}&run={}", kApi, kRun, link)), 404);
    expect_error(served.ask("PUT", target + "/notes", Role::run, R"({"note": "x"})"), 404);
    expect_error(served.ask("DELETE", target), 404);
  }
  const auto zip = served.get(kRunPath + "/export.zip");
  EXPECT_EQ(zip.body.find("secret"), std::string::npos);
}

TEST(ApiTest, CheckpointsAreTheFilesThatASaveNames) {
  const Served served({}, [](const tests::Folder& folder) {
    Served::one_run(folder);
    for (const auto* name : {"step-000000000030.safetensors", "step-000000000200.safetensors", "step-7.safetensors",
                             "step-00000000000x.safetensors", "manifest.json"})
      folder.write(fmt::format("{}/checkpoints/{}", kRun, name), "weights");
  });
  const auto checkpoints = served.get(kRunPath + "/checkpoints").json()["checkpoints"];
  ASSERT_EQ(checkpoints.size(), 2U) << checkpoints;
  EXPECT_EQ(checkpoints[0]["file"], "checkpoints/step-000000000200.safetensors");
  EXPECT_EQ(checkpoints[0]["step"], 200);
  EXPECT_EQ(checkpoints[1]["step"], 30);
  EXPECT_EQ(checkpoints[1]["bytes"], 7);
}

/// Python's zipfile is the oracle; without Python the archive's beginning is.
TEST(ApiTest, ExportIsAZipArchiveOfTheDirectory) {
  const Served served({}, [](const tests::Folder& folder) {
    Served::one_run(folder);
    folder.write(std::string(kRun) + "/checkpoints/step-000000000030.safetensors", "weights");
    folder.write(std::string(kRun) + "/größe 試.txt", "text");
    folder.write(std::string(kRun) +
                     "/gr\xf6\xdf"
                     "e.txt",
                 "not UTF-8");
  });
  const auto reply = served.get(kRunPath + "/export.zip");
  ASSERT_EQ(reply.status, 200);
  EXPECT_TRUE(reply.body.starts_with("PK\x03\x04"));
  EXPECT_EQ(reply.body.find("safetensors"), std::string::npos);
  EXPECT_NE(served.get(kRunPath + "/export.zip?checkpoints=1").body.find("step-000000000030"), std::string::npos);
  if (std::system("python3 -c pass 2>/dev/null") != 0) return;
  const tests::Folder folder;
  std::ofstream(folder.file("a.zip"), std::ios::binary) << reply.body;
  const auto script = fmt::format(
      "import zipfile,sys; z=zipfile.ZipFile('{}'); assert z.testzip() is None; "
      "assert z.read('{}/metrics.jsonl')==open('{}/{}/metrics.jsonl','rb').read(); "
      "assert z.read('{}/gr\\u00f6\\u00dfe \\u8a66.txt')==b'text'",
      folder.file("a.zip"), kRun, served.folder().path(), kRun, kRun);
  EXPECT_EQ(std::system(fmt::format("python3 -c \"{}\"", script).c_str()), 0);
}

TEST(ApiTest, SessionCookieStandsForTheToken) {
  const Served served;
  const auto login = served.ask("POST", kApi + "/session", Role::none, json{{"token", served.token(Role::run)}}.dump());
  ASSERT_EQ(login.status, 200) << login.body;
  EXPECT_EQ(login.json()["role"], "run");
  const auto cookie = login.headers.at("set-cookie");
  EXPECT_THAT(cookie, testing::HasSubstr("HttpOnly; SameSite=Strict; Path=/"));
  const auto header = "Cookie: " + cookie.substr(0, cookie.find(';')) + "\r\n";
  EXPECT_EQ(served.ask("GET", kApi + "/server", Role::none, "", header).json()["user"], "run-user");
  // A change by a cookie needs the Origin of the service's own pages.
  const std::string note = R"({"note": "x"})";
  expect_error(served.ask("PUT", kRunPath + "/notes", Role::none, note, header), 403);
  EXPECT_EQ(served.ask("PUT", kRunPath + "/notes", Role::none, note, header + "Origin: http://127.0.0.1\r\n").status,
            200);
  expect_error(served.ask("POST", kApi + "/session", Role::none, R"({"token": "wrong"})"), 401);
  EXPECT_THAT(served.ask("DELETE", kApi + "/session", Role::none).headers.at("set-cookie"),
              testing::HasSubstr("Max-Age=0"));
}

TEST(ApiTest, CheckSaysWhatIsWrongAndWithWhichKey) {
  const Served served;
  const auto reply = served.ask("POST", kApi + "/check", Role::read,
                                R"({"config": {"strategy.name": "easgd", "model.name": "lenet", "data.name": "glyphs",
                                    "cluster.workers": 0}})");
  ASSERT_EQ(reply.status, 200) << reply.body;
  EXPECT_EQ(misfit_of_answer(json::parse(embedded_openapi()), "post", kApi + "/check", 200, reply.json()), "");
  EXPECT_EQ(reply.json()["ok"], false);
  EXPECT_EQ(reply.json()["errors"][0]["key"], "cluster.workers");
}

TEST(ApiTest, MetricsCountAnswersAndRuns) {
  const Served served;
  expect_error(served.get("/nowhere"), 404);
  const auto text = served.get("/metrics").body;
  EXPECT_THAT(text, testing::HasSubstr("troupe_http_responses_total{code=\"404\"} 1\n"));
  EXPECT_THAT(text, testing::HasSubstr("troupe_runs{status=\"done\"} 1\n"));
}

TEST(ApiTest, HeadersKeepPagesToThemselves) {
  const Served served;
  const auto reply = served.ask("GET", "/", Role::none);
  EXPECT_EQ(reply.status, 200);
  EXPECT_THAT(reply.headers.at("content-security-policy"), testing::HasSubstr("default-src 'self'"));
  EXPECT_EQ(reply.headers.at("x-content-type-options"), "nosniff");
  EXPECT_FALSE(reply.headers.contains("access-control-allow-origin"));
}

TEST(ApiTest, OneConnectionCarriesManyRequests) {
  const Served served;
  Client client(served.port());
  const auto headers = served.authorization(Role::read);
  std::string all;
  for (int i = 0; i < 20; ++i) all += request_text(i % 3 == 0 ? "HEAD" : "GET", kApi + "/runs", headers);
  ASSERT_TRUE(client.send(all));  // before the first answer
  for (int i = 0; i < 20; ++i) {
    const auto reply = client.receive(i % 3 != 0);
    EXPECT_EQ(reply.status, 200);
    EXPECT_NE(reply.headers.at("content-length"), "0");
  }
}

}  // namespace
}  // namespace troupe::service
