#include "profile/named_code.h"

#include <gtest/gtest.h>

namespace tributary {
namespace {

TEST(NamedCode, OnlyFramesWithoutAddressReferToIt) {
  Definitions definitions;
  definitions.executables.resize(5);
  auto add = [&](FrameKind kind, uint32_t executable) {
    definitions.frames.push_back({.kind = kind, .executable = ExecutableRef{executable}});
  };
  add(FrameKind::kPython, 3);  // of an earlier batch
  add(FrameKind::kPython, 7);
  add(FrameKind::kNative, 8);
  add(FrameKind::kPython, 9);
  add(FrameKind::kKernel, 9);
  add(FrameKind::kJit, 10);
  definitions.processes.push_back({.executable = ExecutableRef{10}});
  // The executable 11 is only defined.
  EXPECT_EQ(FindNamedCode(definitions, 7), (std::vector<bool>{true, false, false, false, false}));
}

}  // namespace
}  // namespace tributary
