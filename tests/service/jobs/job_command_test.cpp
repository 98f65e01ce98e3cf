#include "service/jobs/job_command.hpp"

#include <filesystem>

#include <gtest/gtest.h>

#include "tests/folder.hpp"

namespace troupe::service {
namespace {

using Words = std::vector<std::string>;

const JobFolder kFolder("/r/.service/jobs/7");
const JobPaths kPaths{.executable = "troupe", .run_directory = "/r", .tls = {"--ca", "ca.pem"}};

Job job_of(JobSpec spec) {
  Job job;
  job.id = 7;
  job.spec = std::move(spec);
  job.attempt = 2;
  return job;
}

TEST(JobCommandTest, ATrainingHasItsConfigurationAndTheServicesDirectory) {
  const auto job = job_of({.name = "a", .kind = JobKind::train, .config = "x"});
  EXPECT_EQ(command_line(job, kFolder, kPaths),
            (Words{"troupe", "train", "/r/.service/jobs/7/config.toml", "--set", "run.dir=\"/r\"", "--plain", "--json",
                   "--directory-file", "/r/.service/jobs/7/directory-2"}));
}

TEST(JobCommandTest, AResumedTrainingGoesOnInItsRunOnItsNodes) {
  auto job = job_of({.name = "a", .kind = JobKind::train, .config = "x", .nodes = "h1:1,h2:2"});
  job.resume = true;
  job.run = "20260102-030405-a";
  EXPECT_EQ(command_line(job, kFolder, kPaths),
            (Words{"troupe", "train", "--resume", "/r/20260102-030405-a", "--plain", "--json", "--directory-file",
                   "/r/.service/jobs/7/directory-2", "--nodes", "h1:1,h2:2", "--ca", "ca.pem"}));
  job.run.clear();
  EXPECT_EQ(command_line(job, kFolder, kPaths)[2], "/r/.service/jobs/7/config.toml") << "it has never had a run";
}

TEST(JobCommandTest, ALaunchHasTheProgramBehindDashes) {
  auto job = job_of({.name = "a", .kind = JobKind::launch, .command = {"python3", "train.py", "--epochs", "2"}});
  EXPECT_EQ(command_line(job, kFolder, kPaths),
            (Words{"troupe", "launch", "--set", "run.dir=\"/r\"", "--plain", "--json", "--directory-file",
                   "/r/.service/jobs/7/directory-2", "--", "python3", "train.py", "--epochs", "2"}));
  job.spec.config = "x";
  EXPECT_EQ(command_line(job, kFolder, kPaths)[2], "--config");
}

TEST(JobCommandTest, AGridIsNamedAfterItsJobAndNeverNamesARun) {
  auto job = job_of({.name = "alpha tau", .kind = JobKind::grid, .config = "x"});
  job.resume = true;
  job.run = "alpha tau";
  EXPECT_EQ(command_line(job, kFolder, kPaths)[2], "/r/.service/jobs/7/alpha tau.toml");
}

TEST(JobCommandTest, ShellTextIsReadByAShellAsTheSameWords) {
  EXPECT_EQ(shell_text({"a", "b c", "it's", "", "--set=x.y"}), "a 'b c' 'it'\\''s' '' --set=x.y");
}

TEST(JobCommandTest, ARunIsNamedRelativeToTheServicesDirectory) {
  const tests::Folder folder;
  std::filesystem::create_directories(folder.file("runs/grid/one"));
  std::filesystem::create_directory_symlink(folder.file("runs"), folder.file("link"));
  EXPECT_EQ(run_name(folder.file("runs/grid/one"), folder.file("runs")), "grid/one");
  EXPECT_EQ(run_name(folder.file("runs/grid/one/"), folder.file("link")), "grid/one");
  EXPECT_EQ(run_name(folder.file("elsewhere"), folder.file("runs")), "");
  EXPECT_EQ(run_name(folder.file("runs"), folder.file("runs")), "");
}

TEST(JobSpecTest, ASpecificationThatCannotRunIsRefused) {
  const JobSpec good{.name = "a", .kind = JobKind::train, .config = "x"};
  EXPECT_TRUE(check_spec(good).has_value());
  for (const std::string bad : {"", ".a", "-a", "a/b", "a\nb", "a\\b"}) {
    auto spec = good;
    spec.name = bad;
    EXPECT_FALSE(check_spec(spec).has_value()) << bad;
  }
  EXPECT_FALSE(check_spec({.name = "a", .kind = JobKind::train}).has_value());
  EXPECT_FALSE(check_spec({.name = "a", .kind = JobKind::launch}).has_value());
  EXPECT_FALSE(check_spec({.name = "a", .kind = JobKind::train, .config = "x", .command = {"rm"}}).has_value());
  EXPECT_TRUE(check_spec({.name = "a", .kind = JobKind::grid, .config = "x", .nodes = "h:1"}).has_value());
}

}  // namespace
}  // namespace troupe::service
