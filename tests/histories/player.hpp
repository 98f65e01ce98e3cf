/// Plays a history: starts the nodes and the training process, carries out each event at its step, resumes the run until it is done, and
/// reports what it saw. One thread.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "tests/folder.hpp"
#include "tests/histories/conduct.hpp"
#include "tests/histories/history.hpp"
#include "tests/histories/record.hpp"
#include "tests/nodes/process.hpp"

namespace troupe::histories {

struct Outcome {
  std::string run;                   ///< its directory; empty: no run was created
  std::vector<std::string> log{};    ///< events and observations, in order
  std::vector<std::string> wrong{};  ///< violations of the documentation
  nlohmann::json summary{};          ///< printed by the last session
  bool lost = false;                 ///< a worker was lost in some session
  bool crashed =
      false;  ///< the training process was killed, or a session ended with 75: the journal's end may be missing
};

class Player {
 public:
  /// `folder` holds all files of the history and must outlive this object, as must `history`.
  Player(const History& history, const tests::Folder& folder);
  [[nodiscard]] Outcome play();
  /// The output of all processes, for a person to read.
  [[nodiscard]] std::string everything_said();

 private:
  struct Node {
    std::unique_ptr<nodes::NodeProcess> process{};
    std::uint16_t port = 0;
    std::string said{};  // by earlier processes of this node
  };
  struct Resume {
    std::uint32_t nodes = 0;
    std::uint32_t workers = 0;
  };

  void start_node(std::uint32_t k);
  [[nodiscard]] bool runs(std::uint32_t k);
  [[nodiscard]] std::uint32_t nodes_up();
  [[nodiscard]] std::vector<std::uint32_t> members_of(std::uint32_t nodes);
  [[nodiscard]] std::string name(std::uint32_t k) const;

  [[nodiscard]] std::vector<std::string> first_command();
  [[nodiscard]] std::vector<std::string> resume_command(const Resume& how);
  /// Options of a resume that continues without nodes, whatever the run's settings were.
  [[nodiscard]] static std::vector<std::string> in_one_process();
  void run_session(std::vector<std::string> command);
  [[nodiscard]] bool await_begin();
  /// If the next event is a cut: kills the process when the run's directory has one more file.
  void cut();
  /// Blocks until `there` holds. False: the session has ended before, or it hangs.
  [[nodiscard]] bool await(const std::function<bool()>& there);
  [[nodiscard]] bool await_moment(const Event& event);
  /// Blocks until `sign` was printed `times` times; false: the session has ended before.
  [[nodiscard]] bool await_said(const std::string& sign, std::size_t times);
  void do_events();
  void act(const Event& event);
  void lose(std::uint32_t node);
  void silence(std::uint32_t node);
  void bring(std::uint32_t node);
  void await_newcomer(std::uint32_t node, std::size_t times);
  void look_beside(const std::vector<std::string>& command, int code);
  [[nodiscard]] bool was_late(nodes::Process& intruder, int code);
  void check_end(int code);
  [[nodiscard]] bool was_complete(int code);
  void read_summary();
  void await_free();
  void end_nodes();
  [[nodiscard]] bool over();
  [[nodiscard]] bool finite() const { return history_.epochs > 0 || finishing_; }
  void say(const std::string& what);
  void wrong(const std::string& what);

  const History& history_;
  const tests::Folder& folder_;
  Conduct conduct_;
  std::vector<Node> nodes_;
  std::unique_ptr<nodes::Process> train_;
  std::unique_ptr<Progress> progress_;
  std::vector<std::string> said_;  // by earlier sessions
  Outcome outcome_;
  Session session_;
  std::set<std::uint32_t> members_;  // nodes of the session
  std::set<std::uint32_t> lost_;     // members that are lost and not back
  std::set<std::uint32_t> harmed_;   // members that may be reported lost
  std::size_t next_ = 0;             // index of the next event
  std::size_t sessions_begun_ = 0;   // before this one
  std::uint64_t mark_ = 0;           // steps of the session at its last event
  std::uint32_t workers_ = 0;
  std::uint64_t last_epoch_ = 0;  // of a run that has one
  std::vector<Resume> how_;       // set by the event that ended the session; empty: resume as before
  bool finishing_ = false;
  bool gave_up_ = false;
};

}  // namespace troupe::histories
