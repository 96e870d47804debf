import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import check_style  # noqa: E402


class CheckStyle(unittest.TestCase):
    def lines(self, name, text):
        return [line for line, _ in check_style.check(name, text)]

    def test_header_without_pragma_once(self):
        self.assertEqual(self.lines("src/base/x.h", "int f();\n"), [1])
        self.assertEqual(self.lines("src/base/x.h", "// #pragma once\n"), [1])
        self.assertEqual(self.lines("src/base/x.h", "// What it is.\n#pragma once\n"), [])

    def test_sleeps(self):
        for call in ("std::this_thread::sleep_for(1s);", "usleep(5);", "nanosleep(&t, nullptr);"):
            with self.subTest(call=call):
                self.assertEqual(self.lines("tests/contract/x_test.cc", "\n" + call), [2])
                self.assertEqual(self.lines("src/net/x.cc", call), [1])
                self.assertEqual(self.lines("tests/e2e/x.cc", call), [])
                self.assertEqual(self.lines("examples/x.cc", call), [])

    def test_words_that_are_not_sleeps(self):
        text = '// sleep_for(1s)\nauto s = "usleep(1)";\nno_sleep(1);\n'
        self.assertEqual(self.lines("src/net/x.cc", text), [])

    def test_skipped_and_disabled_tests(self):
        text = "TEST(A, DISABLED_B) {}\nTEST(A, C) {\n  GTEST_SKIP();\n}\n"
        self.assertEqual(sorted(self.lines("src/base/x_test.cc", text)), [1, 3])


if __name__ == "__main__":
    unittest.main()
