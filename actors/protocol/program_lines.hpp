/// How many lines a program of the user's may print: a worker leaves out more, and a process that sends more is refused (token_bucket.hpp).
#pragma once

namespace troupe::actors {

/// Of one program. Printing one in each of a thousand steps a second is far more than a log needs, and no flood.
inline constexpr double kProgramLinesAtOnce = 20'000;
inline constexpr double kProgramLinesPerSecond = 200;

}  // namespace troupe::actors
