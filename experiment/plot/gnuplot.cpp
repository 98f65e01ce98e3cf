#include "experiment/plot/gnuplot.hpp"

#include <sys/wait.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <system_error>

#include <boost/process/args.hpp>
#include <boost/process/child.hpp>
#include <boost/process/io.hpp>
#include <boost/process/search_path.hpp>
#include <boost/process/start_dir.hpp>
#include <fmt/format.h>

namespace troupe::plot {
namespace {

namespace bp = boost::process;
namespace fs = std::filesystem;
using core::Errc;
using core::Result;

Result<void> write(const fs::path& path, const std::string& text) {
  errno = 0;
  std::ofstream file(path, std::ios::binary);
  if (!(file << text << std::flush)) return tl::unexpected(core::from_errno(errno, "write", path.string()));
  return {};
}

/// The directory of scripts and data while gnuplot reads them.
class Workshop {
 public:
  static Result<Workshop> open(const Output& output) {
    Workshop workshop;
    std::error_code error;
    if (output.keep) {
      workshop.path_ = fs::path(output.directory) / "gnuplot";
      fs::create_directories(workshop.path_, error);
      if (error) return tl::unexpected(core::from_errno(error.value(), "create directory", workshop.path_.string()));
      return workshop;
    }
    const auto parent = fs::temp_directory_path(error);
    if (error)
      return tl::unexpected(core::from_errno(error.value(), "use the directory for temporary files", "TMPDIR"));
    std::string pattern = (parent / "troupe-plot-XXXXXX").string();
    if (::mkdtemp(pattern.data()) == nullptr)
      return tl::unexpected(core::from_errno(errno, "create directory", pattern));
    workshop.path_ = pattern;
    workshop.temporary_ = true;
    return workshop;
  }
  Workshop(Workshop&& other) noexcept
      : path_(std::move(other.path_)), temporary_(std::exchange(other.temporary_, false)) {}
  Workshop& operator=(Workshop&&) = delete;
  ~Workshop() {
    std::error_code ignored;
    if (temporary_) fs::remove_all(path_, ignored);
  }
  [[nodiscard]] const fs::path& path() const { return path_; }

 private:
  Workshop() = default;
  fs::path path_;
  bool temporary_ = false;
};

Result<void> write_in_place(const std::string& directory, const std::string& name,
                            std::span<const std::span<const std::byte>> parts) {
  std::string text;
  for (const auto& part : parts) text.append(reinterpret_cast<const char*>(part.data()), part.size());
  return write(fs::path(directory) / name, text);
}

std::string first_line(const fs::path& path) {
  std::ifstream file(path);
  std::string line, said;
  while (std::getline(file, line))
    if (line.find_first_not_of(" ^") != std::string::npos) said += (said.empty() ? "" : " ") + line;
  return said;
}

/// Waits until the process has ended, and leaves it to be asked for its exit code: until then its number is no other process's, so that a
/// stop that comes late kills nothing else.
void wait_for_end(pid_t process, const std::stop_token& stop) {
  const std::stop_callback end(stop, [process] { ::kill(process, SIGKILL); });
  siginfo_t ended{};
  while (::waitid(P_PID, static_cast<id_t>(process), &ended, WEXITED | WNOWAIT) != 0 && errno == EINTR) {
  }
}

Result<void> run(const boost::filesystem::path& program, const fs::path& folder, const std::string& script,
                 const std::stop_token& stop) {
  const auto errors = folder / (script + ".err");
  std::error_code error;
  bp::child child(program, bp::args({script}), bp::start_dir(folder.string()),
                  bp::std_in<bp::null, bp::std_out> bp::null, bp::std_err > errors.string(), error);
  if (!error) {
    wait_for_end(child.id(), stop);
    child.wait(error);
  }
  if (stop.stop_requested()) return core::fail(Errc::interrupted, "interrupted");
  if (error) return tl::unexpected(core::from_errno(error.value(), "run", program.string()));
  const auto said = first_line(errors);
  std::error_code ignored;
  fs::remove(errors, ignored);
  if (child.exit_code() != 0)
    return core::fail(Errc::internal,
                      fmt::format("gnuplot refused {} (--keep leaves it to look at): {}", script, said));
  return {};
}

/// What gnuplot drew into the workshop goes to the output's directory if it is whole.
Result<void> publish(const fs::path& drawn, const std::string& format, const Output& output) {
  std::ostringstream bytes;
  bytes << std::ifstream(drawn, std::ios::binary).rdbuf();
  const auto picture = std::move(bytes).str();
  const auto name = drawn.filename().string();
  std::error_code ignored;
  fs::remove(drawn, ignored);
  if (!is_whole(format, picture))
    return core::fail(
        Errc::io, fmt::format("gnuplot wrote only a part of {} in {}: make room there, or set TMPDIR to another folder",
                              name, drawn.parent_path().string()));
  const std::array parts{std::as_bytes(std::span(picture))};
  return (output.publish ? output.publish : write_in_place)(output.directory, name, parts);
}

std::string terminal(const std::string& format, const Figure& figure) {
  // Debian's gnuplot-nox finds this font in fonts-dejavu-core; without it gnuplot uses another.
  return format == "svg"
             ? fmt::format("set terminal svg noenhanced size {},{} font 'DejaVu Sans,15' background 'white'\n",
                           figure.width, figure.height)
             : fmt::format(
                   "set terminal pngcairo noenhanced size {},{} font 'DejaVu Sans,12' background "
                   "'white'\n",
                   figure.width, figure.height);
}

}  // namespace

const std::vector<std::string>& formats() {
  static const std::vector<std::string> all{"png", "svg"};
  return all;
}

bool is_whole(const std::string& format, std::string_view bytes) {
  using namespace std::string_view_literals;
  constexpr auto kPngBegin = "\x89PNG\r\n\x1a\n"sv, kPngEnd = "IEND\xAE\x42\x60\x82"sv;
  if (format == "png") return bytes.starts_with(kPngBegin) && bytes.ends_with(kPngEnd);
  return bytes.substr(0, bytes.find_last_not_of(" \r\n") + 1).ends_with("</svg>");
}

std::string script_of(const Figure& figure, const std::vector<std::string>& formats, const std::string& output) {
  std::string text = "# gnuplot " + figure.name + ".gp\nset encoding utf8\n";
  for (const auto& format : formats)
    text += fmt::format("{}set output {}\n{}unset output\nreset\n", terminal(format, figure),
                        literal(fmt::format("{}/{}.{}", output, figure.name, format)), figure.script);
  return text;
}

Result<std::vector<std::string>> render(const std::vector<Figure>& figures, const Output& output) {
  const auto program = bp::search_path("gnuplot");
  if (program.empty())
    return core::fail(Errc::config, "gnuplot is not installed or not on PATH: apt-get install gnuplot-nox");
  std::error_code error;
  fs::create_directories(output.directory, error);
  if (error) {
    auto failed = core::from_errno(error.value(), "create directory", output.directory);
    failed.message += ": give --output DIR for another place";
    return tl::unexpected(std::move(failed));
  }
  const auto absolute = fs::absolute(output.directory, error).string();
  if (error) return tl::unexpected(core::from_errno(error.value(), "find directory", output.directory));
  const auto workshop = Workshop::open(output);
  if (!workshop) return tl::unexpected(workshop.error());
  std::vector<std::string> paths;
  for (const auto& figure : figures) {
    if (output.stop.stop_requested()) return core::fail(Errc::interrupted, "interrupted");
    for (const auto& [name, contents] : figure.data)
      if (auto written = write(workshop->path() / name, contents); !written) return tl::unexpected(written.error());
    const auto script = figure.name + ".gp";
    if (auto written = write(workshop->path() / script, script_of(figure, output.formats, ".")); !written)
      return tl::unexpected(written.error());
    if (auto drawn = run(program, workshop->path(), script, output.stop); !drawn) return tl::unexpected(drawn.error());
    for (const auto& format : output.formats) {
      const auto name = fmt::format("{}.{}", figure.name, format);
      if (auto published = publish(workshop->path() / name, format, output); !published)
        return tl::unexpected(published.error());
      paths.push_back((fs::path(output.directory) / name).string());
    }
    if (!output.keep) continue;
    // Who runs it again wants the picture where this one is.
    if (auto written = write(workshop->path() / script, script_of(figure, output.formats, absolute)); !written)
      return tl::unexpected(written.error());
  }
  return paths;
}

}  // namespace troupe::plot
