#include "store/query/started.hpp"

#include <cstdio>
#include <ctime>

namespace troupe::store {

std::int64_t seconds_since_1970(const std::string& started) {
  std::tm time{};
  if (std::sscanf(started.c_str(), "%d-%d-%d %d:%d:%d", &time.tm_year, &time.tm_mon, &time.tm_mday, &time.tm_hour,
                  &time.tm_min, &time.tm_sec) != 6)
    return 0;
  time.tm_year -= 1900;
  time.tm_mon -= 1;
  time.tm_isdst = -1;
  return std::int64_t{std::mktime(&time)};
}

}  // namespace troupe::store
