#pragma once

#include <string>

namespace tributary {

// While one lives, what libbpf says on this thread goes to our debug log and is kept for an error message; what it says
// at other times goes to the debug log alone. libbpf's printer is a process-wide function pointer, hence the state
// behind it is per thread. Not nested.
class LibbpfLog {
 public:
  LibbpfLog();
  ~LibbpfLog();
  LibbpfLog(const LibbpfLog&) = delete;
  LibbpfLog& operator=(const LibbpfLog&) = delete;

  // The last 64 KiB.
  const std::string& text() const { return text_; }
  void Append(const std::string& message);

 private:
  std::string text_;
};

}  // namespace tributary
