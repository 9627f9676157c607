import {render} from 'preact';
import 'uplot/dist/uPlot.min.css';
import './app.css';
import {App} from './components/app.tsx';
import {loadCaller} from './sign_in.ts';
import {start} from './state.ts';

start();
void loadCaller();
render(<App />, document.getElementById('app')!);
