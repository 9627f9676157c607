#pragma once

#include <cstddef>
#include <deque>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "profile/executable_id.h"

namespace tributary {

// The recent problems with symbols that the web page and `tributary symbols` show: files with wrong contents,
// unreadable directories, servers that do not answer. Add also logs a problem, unless the problem is already in the
// list or kLoggedPerMinute problems were already logged in this minute. The list contains the last kKeptMax problems.
// If a problem occurs again, its count increases by one. Any thread.
class SymbolNotices {
 public:
  static constexpr size_t kKeptMax = 200;
  static constexpr size_t kTextBytesMax = 512;
  static constexpr unsigned kLoggedPerMinute = 60;

  struct Notice {
    UnixNs at;               // the last time
    std::string executable;  // "": the problem concerns no single executable
    std::string text;
    uint64_t times = 1;
  };
  explicit SymbolNotices(const Clock& clock) : clock_(clock) {}

  void Add(const ExecutableId& id, std::string_view text);
  std::vector<Notice> List() const;  // the newest first

 private:
  bool MayLog();

  const Clock& clock_;
  mutable std::mutex mutex_;
  std::deque<Notice> notices_;
  int64_t minute_ = -1;  // of the clock
  unsigned logged_ = 0;  // in that minute
};

}  // namespace tributary
