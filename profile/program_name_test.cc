#include "profile/program_name.h"

#include <gtest/gtest.h>

#include <string>

namespace tributary {
namespace {

TEST(ProgramName, IsTheNameOfTheFile) {
  EXPECT_EQ(ProgramName("/usr/sbin/nginx", "worker", Pid{1}), "nginx");
  EXPECT_EQ(ProgramName("relative", "x", Pid{1}), "relative");
  EXPECT_EQ(ProgramName("/opt/app-91173221a7ea", "x", Pid{1}), "app-91173221a7ea");
}

TEST(ProgramName, WithoutAFileIsTheThreadsName) {
  EXPECT_EQ(ProgramName("", "kworker/0:1", Pid{1}), "kworker/0:1");
  EXPECT_EQ(ProgramName("", "kworker/0:1", Pid{2}), "kworker");
  EXPECT_EQ(ProgramName("/", "x", Pid{1}), "x");
}

TEST(ProgramName, OfAMemoryFileIsTheSameAtEachStart) {
  struct Case {
    const char *path, *comm, *name;
  };
  for (const auto& [path, comm, name] : {
           Case{"/memfd:sealed-91173221a7ea", "3", "sealed"},
           Case{"/memfd:sealed-0042bd", "3", "sealed"},
           Case{"/memfd:app_12345", "app", "app"},
           Case{"/memfd:app.4711.91173221a7ea", "app", "app"},
           Case{"/memfd:job-0a1b2c3d-abcd-face-dead-444455556666", "3", "job"},
           Case{"/memfd:runc_cloned:/proc/self/exe", "runc:[2:INIT]", "runc_cloned"},
           // Words, versions and short numbers stay.
           Case{"/memfd:added-face", "3", "added-face"},
           Case{"/memfd:python-311", "3", "python-311"},
           Case{"/memfd:shim-", "3", "shim"},
           // The whole name is generated, or there is none.
           Case{"/memfd:91173221a7ea", "server", "server"},
           Case{"/memfd:91173221a7ea", "3", "memfd"},
           Case{"/memfd:", "", "memfd"},
           Case{"/memfd:---", "12", "memfd"},
       }) {
    EXPECT_EQ(ProgramName(path, comm, Pid{1}), name) << path;
  }
}

TEST(ProgramName, TakesLongNames) {
  const std::string path = "/memfd:" + std::string(100'000, '-') + "x" + std::string(100'000, '1');
  EXPECT_EQ(ProgramName(path, "c", Pid{1}), path.substr(7));
}

}  // namespace
}  // namespace tributary
