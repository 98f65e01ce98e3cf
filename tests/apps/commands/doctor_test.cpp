#include <algorithm>
#include <cstdlib>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/apps/program.hpp"

namespace troupe::apps {
namespace {

TEST(DoctorTest, JsonListsTheFeaturesOfTheBuild) {
  const auto outcome = troupe({"doctor", "--json"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const auto found = nlohmann::json::parse(outcome.out);
  EXPECT_TRUE(found["cuda"]["built"].is_boolean());
  EXPECT_TRUE(found["cuda"]["devices"].is_number_integer());
  EXPECT_TRUE(found["cuda"]["driver"].is_string());
  EXPECT_TRUE(found["cuda"]["libraries"].is_string());
  EXPECT_EQ(found["cuda"]["names"].size(), found["cuda"]["devices"].get<std::size_t>());
  EXPECT_TRUE(found["mpi"]["built"].is_boolean());
  EXPECT_TRUE(found["ucx"]["built"].is_boolean());
  ASSERT_TRUE(found["hdf5"]["built"].is_boolean());
  if (found["hdf5"]["built"].get<bool>())
    EXPECT_TRUE(found["hdf5"]["version"].get<std::string>().starts_with("1."));
  else
    EXPECT_NE(found["hdf5"]["absent"].get<std::string>().find("libhdf5-dev"), std::string::npos);
  EXPECT_EQ(found["onednn"]["built"], true);
  EXPECT_TRUE(found["onednn"]["version"].get<std::string>().starts_with("2."));
  EXPECT_NE(found["onednn"]["isa"], "");
  EXPECT_TRUE(found["caf"]["version"].get<std::string>().starts_with("0.17."));
  EXPECT_GE(found["threads"].get<int>(), 1);
  EXPECT_GT(found["memory_bytes"].get<std::int64_t>(), 0);
}

TEST(DoctorTest, PlainReportNamesTheLibraries) {
  const auto outcome = troupe({"doctor"});
  EXPECT_EQ(outcome.code, 0);
  for (const auto* name : {"cpu", "memory", "oneDNN", "CAF", "HDF5"})
    EXPECT_NE(outcome.out.find(name), std::string::npos) << name;
}

// Whatever the machine: either it can train there, or a line says what is missing, in both reports.
TEST(DoctorTest, SaysWhyThereIsNoGpu) {
  const auto cuda = nlohmann::json::parse(troupe({"doctor", "--json"}).out)["cuda"];
  const auto plain = troupe({"doctor"}).out;
  const bool usable = cuda["built"].get<bool>() && cuda["devices"].get<int>() > 0 && cuda["libraries"] != "";
  EXPECT_TRUE(usable || !cuda["why"].empty()) << cuda.dump();
  for (const auto& why : cuda["why"]) EXPECT_NE(plain.find(why.get<std::string>()), std::string::npos) << plain;
  for (const auto& name : cuda["names"]) EXPECT_NE(plain.find(name.get<std::string>()), std::string::npos) << plain;
}

// No machine of these tests has a library that was built for CUDA and a GPU, so each endpoint has a reason.
TEST(DoctorTest, SaysOfEachEndpointWhetherItTakesTheMemoryOfAGpuAndWhyNot) {
  const auto json = nlohmann::json::parse(troupe({"doctor", "--json"}).out);
  const auto plain = troupe({"doctor"}).out;
  const auto found = json["device_messages"];
  for (const char* name : {"inproc", "shm", "tcp", "ucx", "mpi"}) {
    SCOPED_TRACE(name);
    ASSERT_TRUE(found.contains(name)) << found;
    const auto& takes = found[name]["takes"];
    if (takes.is_boolean() && takes.get<bool>()) {
      EXPECT_NE(plain.find(std::string(name) + ": takes a GPU's memory"), std::string::npos) << plain;
      continue;
    }
    const auto why = found[name].value("why", "");
    EXPECT_FALSE(why.empty());
    EXPECT_NE(plain.find(why), std::string::npos) << plain;
  }
  for (const char* name : {"inproc", "shm", "tcp"}) EXPECT_EQ(found[name]["takes"], false) << name;
  const bool has_ucx = json["ucx"]["built"].get<bool>(), has_no_gpu = json["cuda"]["devices"] == 0;
  if (has_ucx && has_no_gpu) {
    EXPECT_EQ(found["ucx"]["takes"], false);
  }
}

// A library of the tests stands for the driver's.
TEST(DoctorTest, ShowsWhatGpusAreDoing) {
  const char* before = std::getenv("LD_LIBRARY_PATH");
  const std::string usual = before ? before : "";
  ::setenv("LD_LIBRARY_PATH", (TROUPE_FAKE_NVML_FOLDER ":" + usual).c_str(), 1);
  const auto json = troupe({"doctor", "--json"});
  const auto plain = troupe({"doctor"});
  before ? ::setenv("LD_LIBRARY_PATH", usual.c_str(), 1) : ::unsetenv("LD_LIBRARY_PATH");
  ASSERT_EQ(json.code, 0) << json.err;
  const auto use = nlohmann::json::parse(json.out)["cuda"]["use"];
  ASSERT_EQ(use.size(), 2U) << json.out;
  EXPECT_EQ(use[0]["uuid"], "GPU-1111");
  EXPECT_EQ(use[0]["load"], 0.34);
  EXPECT_EQ(use[0]["memory_used_bytes"], 13421772800);
  EXPECT_TRUE(use[1]["load"].is_null());
  EXPECT_NE(plain.out.find("NVIDIA H200 (GPU-1111): 34 % busy, 12.5 of 140.0 GiB in use"), std::string::npos)
      << plain.out;
}

// The tests' stand-in for NCCL lies beside that for the driver's library; then a file that is no library stands in its way.
TEST(DoctorTest, NamesNcclAndWhyItCannotBeLoaded) {
  TemporaryDirectory folder;
  (void)folder.write("libnccl.so.2", "no library");
  const char* before = std::getenv("LD_LIBRARY_PATH");
  const std::string usual = before ? before : "";
  const std::string fakes = TROUPE_FAKE_NVML_FOLDER;
  for (const auto& where : {fakes, folder.path()}) {
    SCOPED_TRACE(where);
    ::setenv("LD_LIBRARY_PATH", (where + ":" + usual).c_str(), 1);
    const auto json = troupe({"doctor", "--json"});
    const auto plain = troupe({"doctor"});
    before ? ::setenv("LD_LIBRARY_PATH", usual.c_str(), 1) : ::unsetenv("LD_LIBRARY_PATH");
    ASSERT_EQ(json.code, 0) << json.err;
    const auto found = nlohmann::json::parse(json.out)["nccl"];
    ASSERT_EQ(found["usable"], where == fakes) << found;
    if (where == fakes) {
      EXPECT_EQ(found["version"], "2.27.3");
      EXPECT_EQ(found["path"], fakes + "/libnccl.so.2");
      EXPECT_NE(plain.out.find("NCCL     2.27.3, for exchange.algorithm = \"nccl\": " + fakes), std::string::npos)
          << plain.out;
    } else {
      EXPECT_NE(found["why"].get<std::string>().find("NCCL cannot be loaded: "), std::string::npos) << found;
      EXPECT_NE(plain.out.find("NCCL     " + found["why"].get<std::string>()), std::string::npos) << plain.out;
    }
  }
}

/// A file that is no library stands in the way of each endpoint's: the module cannot be loaded, as where the library is not installed.
TEST(DoctorTest, NamesTheLibraryThatAModuleLacks) {
  TemporaryDirectory folder;
  for (const char* library : {"libmpi.so.40", "libucp.so.0"}) (void)folder.write(library, "no library");
  const auto as_it_is = nlohmann::json::parse(troupe({"doctor", "--json"}).out);
  const char* before = std::getenv("LD_LIBRARY_PATH");
  const std::string usual = before ? before : "";
  ::setenv("LD_LIBRARY_PATH", (folder.path() + ":" + usual).c_str(), 1);
  const auto json = troupe({"doctor", "--json"});
  const auto plain = troupe({"doctor"});
  before ? ::setenv("LD_LIBRARY_PATH", usual.c_str(), 1) : ::unsetenv("LD_LIBRARY_PATH");
  ASSERT_EQ(json.code, 0) << json.err;
  const auto found = nlohmann::json::parse(json.out);
  for (const auto& [name, library] : {std::pair("mpi", "libmpi.so.40"), {"ucx", "libucp.so.0"}}) {
    SCOPED_TRACE(name);
    if (!found[name]["built"].get<bool>()) continue;
    EXPECT_EQ(as_it_is[name]["usable"], true) << as_it_is[name];
    EXPECT_EQ(found[name]["usable"], false);
    const auto why = found[name].value("why", "");
    EXPECT_NE(why.find(library), std::string::npos) << why;
    EXPECT_NE(why.find("install"), std::string::npos) << why;
    EXPECT_NE(plain.out.find(why), std::string::npos) << plain.out;
  }
}

// Without a device there is nothing to stage.
TEST(DoctorTest, StagesForDevicesThatAreThere) {
  const auto cuda = nlohmann::json::parse(troupe({"doctor", "--json"}).out)["cuda"];
  EXPECT_TRUE(cuda["devices"].get<int>() > 0 || !cuda["staging"].get<bool>()) << cuda;
  EXPECT_EQ(cuda["staging"].get<bool>(),
            troupe({"doctor"}).out.find("endpoints can stage device memory") != std::string::npos);
}

TEST(DoctorTest, ShowsTheCoresOfTheMachineAndOfItsWorkers) {
  const auto outcome = troupe({"doctor", "--workers", "1", "--json"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const auto found = nlohmann::json::parse(outcome.out)["pinning"];
  ASSERT_FALSE(found["usable_cpus"].empty());
  if (found.contains("absent")) GTEST_SKIP() << found["absent"];
  ASSERT_EQ(found["workers"].size(), 1U);
  for (const auto& cpu : found["workers"][0]["cpus"]) {
    EXPECT_TRUE(std::ranges::any_of(found["cores"], [&](const auto& core) {
      return std::ranges::find(core["cpus"], cpu) != core["cpus"].end();
    })) << cpu;
  }
  const auto plain = troupe({"doctor", "--workers", "1"}).out;
  EXPECT_NE(plain.find("hardware thread"), std::string::npos) << plain;
  EXPECT_NE(plain.find("worker 0 on cpu"), std::string::npos) << plain;
  EXPECT_NE(troupe({"doctor", "--workers", "4096"}).out.find("too few cpus"), std::string::npos);
  EXPECT_EQ(troupe({"doctor", "--workers", "0"}).code, 2);
}

}  // namespace
}  // namespace troupe::apps
