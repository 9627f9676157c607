#include "kernel-collector/processes/function_pool.h"

#include <gtest/gtest.h>

#include "kernel-collector/processes/runtime_binary_testing.h"

namespace tributary {
namespace {

TEST(FunctionPool, SharesEqualFunctions) {
  Metrics metrics;
  FunctionPool pool(metrics);
  const auto first = pool.Add(std::make_shared<FakeFunction>("work", "/app/a.py", 3));
  EXPECT_EQ(pool.Add(std::make_shared<FakeFunction>("work", "/app/a.py", 3)), first);
  EXPECT_EQ(pool.size(), 1u);
  // Another function of the file shares its source only.
  const auto other = pool.Add(std::make_shared<FakeFunction>("work", "/app/a.py", 30));
  EXPECT_NE(other, first);
  EXPECT_EQ(pool.At(other).source, pool.At(first).source);
  EXPECT_EQ(pool.At(first).source->path, "/app/a.py");
  EXPECT_TRUE(pool.At(first).source->id.known());
  // The same lines of another edition of the file.
  EXPECT_NE(pool.Add(std::make_shared<FakeFunction>("work", "/app/a.py", 3, "others")), first);
}

TEST(FunctionPool, AFunctionMayHaveNoFile) {
  Metrics metrics;
  FunctionPool pool(metrics);
  EXPECT_EQ(pool.At(pool.Add(std::make_shared<FakeFunction>("f", "", 3))).source, nullptr);
}

TEST(FunctionPool, DropsFunctionsWithoutReferences) {
  Metrics metrics;
  FunctionPool pool(metrics);
  const auto first = pool.Add(std::make_shared<FakeFunction>("work", "/app/a.py", 3));
  const std::weak_ptr<CodeFile> source = pool.At(first).source;
  pool.Ref(first);
  pool.Unref(first);
  EXPECT_EQ(pool.At(first).function->name, "work");
  EXPECT_GT(pool.bytes(), 0u);
  pool.Unref(first);
  EXPECT_EQ(pool.size(), 0u);
  EXPECT_EQ(pool.bytes(), 0u);
  EXPECT_TRUE(source.expired());
  // Its number is used again, and its content is forgotten.
  EXPECT_EQ(pool.Add(std::make_shared<FakeFunction>("later", "/app/b.py", 1)), first);
  EXPECT_NE(pool.Add(std::make_shared<FakeFunction>("work", "/app/a.py", 3)), first);
}

}  // namespace
}  // namespace tributary
