// Every scenario, one after the other, in one browser; the later ones look at what the first ones set up.
import { after } from 'node:test';
import { close } from './lib.mjs';
import './sign_in.mjs';
import './flow.mjs';
import './conflict.mjs';
import './alone.mjs';
import './forms.mjs';
import './pages.mjs';

after(close);
