/// A keeper stands between the engine and a program of the user's, so that a program ends with all its processes, whoever dies and however.
///
/// It is this executable, started again: a constructor in it sees its name and never comes to main(). Two keepers watch each other: the outer
/// one is the engine's child, the inner one is its child and the program's parent. Both adopt the orphans among their descendants, those in
/// other groups and sessions too, and kill them all when what they watch ends.
///
/// | who is killed | what ends the others |
/// |-|-|
/// | the engine, or its thread | the outer keeper dies with the thread, or sees its pipe's end |
/// | the outer keeper | the inner one sees its pipe's end |
/// | the inner keeper | the kernel kills the program; the outer keeper adopts and kills the rest |
/// | the program | the inner keeper |
///
/// The outer keeper ends as the program did: with its exit code or by its signal. Keepers ignore SIGINT, SIGTERM and the like: a service
/// that signals all its processes leaves the engine to end the run in order.
#pragma once

namespace troupe::guest {

/// What a keeper inherits.
struct KeeperDescriptors {
  int output;  // the program's standard output and error
  int failed;  // takes one int if the program cannot be started: errno of the program's, or -errno of the keeper's own; its end: started
  int life;    // its end ends the program
};

/// argv[0] of keepers; the program's own arguments begin at argv[kKeeperWords].
inline constexpr const char* kKeeperName = "troupe-keeper";
inline constexpr int kKeeperWords = 2;
inline constexpr const char* kKeeperMark = "keeps";  // argv[1]

/// Turns this process, just forked, into a keeper. `argv`: kKeeperName, kKeeperMark, the command, null. Makes only calls that are safe
/// between fork and exec.
[[noreturn]] void become_keeper(const KeeperDescriptors& given, char* const* argv, char* const* environment) noexcept;

}  // namespace troupe::guest
