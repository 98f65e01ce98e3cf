/// Keepers are processes between the engine and a program of the user's. They kill all processes of the program when it ends, when the engine
/// ends, or when one of the keepers is killed.
///
/// A keeper is this executable, started again: a constructor recognizes argv and never returns, so main() does not run. The outer keeper is
/// the engine's child; the inner one is the outer one's child and the program's parent. Both adopt orphans among their descendants
/// (PR_SET_CHILD_SUBREAPER), also those in other process groups and sessions. Each kills its descendants when its child or its parent ends.
///
/// | killed | what ends the others |
/// |-|-|
/// | the engine, or its thread | the outer keeper dies with the thread, or sees its pipe's end |
/// | the outer keeper | the inner one sees its pipe's end |
/// | the inner keeper | the kernel kills the program; the outer keeper adopts and kills the rest |
/// | the program | the inner keeper |
///
/// The outer keeper ends as the program did: with its exit code or by its signal. Keepers block SIGINT, SIGTERM and the like: when a service
/// manager signals all processes, the engine still ends the run in order. Thread rule: become_keeper() is called in the child of a fork; the rest
/// are constants.
#pragma once

namespace troupe::guest {

/// What a keeper inherits.
struct KeeperDescriptors {
  int output;  // the program's standard output and error
  int failed;  // write end of a pipe. One int: exec of the program failed with this errno, or a keeper with -errno; closed empty: started
  int life;    // read end of a pipe; when its write end closes, the program is killed
};

/// argv[0] of keepers. The program's command begins at argv[kKeeperWords].
inline constexpr const char* kKeeperName = "troupe-keeper";
inline constexpr int kKeeperWords = 2;
inline constexpr const char* kKeeperMark = "keeps";  // argv[1]

/// Turns this process, just forked, into a keeper. `argv`: kKeeperName, kKeeperMark, the command, null. Makes only calls that are safe
/// between fork and exec.
[[noreturn]] void become_keeper(const KeeperDescriptors& given, char* const* argv, char* const* environment) noexcept;

}  // namespace troupe::guest
