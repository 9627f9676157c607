// Tests the built page in chromium with a mock reducer that has fixed answers. Usage: node mock_test.mjs DIST
import './mock_graph_cases.mjs';
import './mock_query_cases.mjs';
import './mock_types_cases.mjs';
import './mock_language_cases.mjs';
import './mock_state_cases.mjs';
import './mock_health_cases.mjs';
import './mock_symbols_cases.mjs';
import './mock_events_cases.mjs';
import './mock_lines_cases.mjs';
import './mock_sign_in_cases.mjs';
import './mock_live_cases.mjs';
