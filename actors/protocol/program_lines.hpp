/// How fast one program of the user's may print lines. A worker leaves out lines beyond this; the recorder refuses those of a process that sends
/// twice as many (token_bucket.hpp).
#pragma once

namespace troupe::actors {

/// Of one program. Printing one in each of a thousand steps a second is far more than a log needs, and no flood.
inline constexpr double kProgramLinesAtOnce = 20'000;
inline constexpr double kProgramLinesPerSecond = 200;

}  // namespace troupe::actors
