import {render} from 'preact';
import 'uplot/dist/uPlot.min.css';
import './app.css';
import {App} from './components/app.tsx';
import {start} from './state.ts';

start();
render(<App />, document.getElementById('app')!);
